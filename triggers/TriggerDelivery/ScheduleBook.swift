import DocumentModel
import Invocation
import RuntimeSupport
import Schedules
import StorageEngine

/// When each scheduled function runs next: a value that decides and never acts.
struct ScheduleBook: Sendable {
  /// The last run of each scheduled function, by its name.
  static let keyspace = Keyspace("schedules")

  private struct Line: Sendable {
    var schedule: Schedule
    var spec: Spec
    var next: Timestamp?
  }

  /// A schedule as its function declares it; a changed one begins anew.
  private struct Spec: Sendable, Hashable {
    var text: String
    var timeZone: String
  }

  private var lines: [String: Line] = [:]

  /// When the first of all schedules is due.
  var next: Timestamp? { lines.values.compactMap(\.next).min() }

  /// When a function is due; nil for one without a schedule.
  func next(of function: String) -> Timestamp? { lines[function]?.next }

  /// Reads the schedules of a deployment, and from storage when each was run last.
  ///
  /// A new or changed schedule is next due after `now`. When a schedule's runs were missed while
  /// nobody was there to run them, the last of them is due at once.
  init(
    functions: [String: FunctionEndpoint],
    stored: [String: [UInt8]],
    now: Timestamp
  ) throws {
    for (function, endpoint) in functions {
      guard let trigger = endpoint.scheduleTrigger else { continue }
      let schedule = try Schedule(trigger.schedule, timeZone: trigger.timeZone)
      let spec = Spec(text: trigger.schedule, timeZone: trigger.timeZone ?? "")
      var last = now
      if let bytes = stored[function] {
        let (known, time) = try Self.decode(bytes)
        if known == spec { last = min(time, now) }
      }
      lines[function] = Line(schedule: schedule, spec: spec, next: schedule.next(after: last))
    }
  }

  init() {}

  /// Stores every schedule that storage lacks, so that runs missed later are not lost.
  func remember(at now: Timestamp, unless stored: [String: [UInt8]], in batch: inout StorageBatch) {
    for (function, line) in lines {
      if let bytes = stored[function], let known = try? Self.decode(bytes), known.0 == line.spec {
        continue
      }
      put(function, line.spec, now, in: &batch)
    }
    for function in stored.keys where lines[function] == nil {
      batch.delete(Self.keyspace, Array(function.utf8))
    }
  }

  /// The runs that are due at `now`, with their times; earlier missed runs are left out.
  mutating func takeDue(now: Timestamp, in batch: inout StorageBatch) -> [(String, Timestamp)] {
    var due: [(String, Timestamp)] = []
    for (function, line) in lines.sorted(by: { $0.key < $1.key }) {
      guard let next = line.next, next <= now else { continue }
      let time = max(next, line.schedule.previous(atOrBefore: now) ?? next)
      due.append((function, time))
      lines[function]?.next = line.schedule.next(after: time)
      put(function, line.spec, time, in: &batch)
    }
    return due
  }

  private func put(
    _ function: String,
    _ spec: Spec,
    _ time: Timestamp,
    in batch: inout StorageBatch
  ) {
    var encoder = BinaryEncoder()
    encoder.append(spec.text)
    encoder.append(spec.timeZone)
    encoder.append(signed: time.microseconds)
    batch.put(Self.keyspace, Array(function.utf8), encoder.bytes)
  }

  private static func decode(_ bytes: [UInt8]) throws(CorruptDataError) -> (Spec, Timestamp) {
    var decoder = BinaryDecoder(bytes)
    let spec = Spec(text: try decoder.text(), timeZone: try decoder.text())
    return (spec, Timestamp(microseconds: try decoder.signed()))
  }
}
