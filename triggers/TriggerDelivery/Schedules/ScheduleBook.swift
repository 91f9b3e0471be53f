import DocumentModel
import Manifests
import Schedules
import StorageEngine

/// The next run of each scheduled function: a value that decides and never acts.
struct ScheduleBook: Sendable {
  /// The last run of each scheduled function, by its name.
  static let keyspace = Keyspace("schedules")

  private struct Line: Sendable {
    var schedule: Schedule
    var spec: Spec
    var next: Timestamp?
  }

  /// A schedule as its function declares it; a changed schedule starts again from the current time.
  private struct Spec: Sendable, Hashable {
    var text: String
    var timeZone: String
  }

  private var lines: [String: Line] = [:]

  /// The earliest due time of all schedules.
  var next: Timestamp? { lines.values.compactMap(\.next).min() }

  /// Returns the due time of a function; nil for a function without a schedule.
  func next(of function: String) -> Timestamp? { lines[function]?.next }

  /// Creates a book from the schedules of a deployment and the last runs in storage.
  ///
  /// A new or changed schedule is next due after `now`. If runs were missed while no server was
  /// running, the last of them is due at once.
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
      if let row = stored[function] {
        let (known, time) = try Self.decode(row)
        if known == spec { last = min(time, now) }
      }
      lines[function] = Line(schedule: schedule, spec: spec, next: schedule.next(after: last))
    }
  }

  init() {}

  /// Stores every schedule that storage lacks, so that runs missed later are not lost.
  ///
  /// Also deletes the rows of functions without a schedule.
  func remember(
    at now: Timestamp,
    unless stored: [String: [UInt8]],
    in batch: inout StorageBatch
  ) {
    for (function, line) in lines {
      // A row that cannot be read is replaced.
      if let row = stored[function], let known = try? Self.decode(row), known.0 == line.spec {
        continue
      }
      put(function, line.spec, now, in: &batch)
    }
    for function in stored.keys where lines[function] == nil {
      batch.delete(Self.keyspace, Array(function.utf8))
    }
  }

  /// Returns the functions that are due at `now`, ordered by name.
  func due(now: Timestamp) -> [String] {
    lines.filter { $0.value.next.map { $0 <= now } ?? false }.keys.sorted()
  }

  /// Takes a function's run that is due at `now` and returns its time.
  ///
  /// Missed earlier runs are left out.
  mutating func take(
    _ function: String,
    now: Timestamp,
    in batch: inout StorageBatch
  ) -> Timestamp? {
    guard let line = lines[function], let next = line.next, next <= now else { return nil }
    let time = max(next, line.schedule.previous(atOrBefore: now) ?? next)
    lines[function]?.next = line.schedule.next(after: time)
    put(function, line.spec, time, in: &batch)
    return time
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
