import DequeModule
import FunctionLogs
import HTTPMessages
import HTTPTypes
import Identity
import Invocation
import Synchronization

/// The log lines about ended invocations: a line for each, or a count where there are too many.
///
/// A function that ends more than `linesMax` invocations in a second gets one line for the rest, so
/// that its lines neither crowd out the lines of others nor slow it down. A line is held for a
/// moment, in which the function's own lines, which come through a pipe, are read.
package final class InvocationJournal: Sendable {
  private let log: FunctionLogStore
  private let suiteTime: @Sendable () -> String?
  private let tallies = Mutex<[String: Tally]>([:])
  /// The lines that are held, the oldest first.
  private let held = Mutex<Deque<HeldLine>>([])

  /// The maximum number of lines of one function in a second.
  static let linesMax = 20
  private static let window = Duration.seconds(1)
  static let holdTime = Duration.milliseconds(50)

  /// The invocations of a function that ended in the current second.
  private struct Tally {
    var end: Duration
    var lines = 0
    var leftOut: [FunctionFigures.Outcome: Int] = [:]
  }

  /// A line until the function's own lines have been read.
  private struct HeldLine {
    var due: Duration
    var function: String
    var message: String
    var invocation: String
    var trace: String?
    var end: InvocationEnd
  }

  /// Creates a journal that writes to `log`.
  ///
  /// `suiteTime` returns the suite's time in RFC 3339 if it is ahead of the machine's.
  package init(log: FunctionLogStore, suiteTime: @escaping @Sendable () -> String?) {
    self.log = log
    self.suiteTime = suiteTime
  }

  /// Notes or counts the end of an invocation.
  ///
  /// Returns the time at which `writeDue` must be called, if that is new.
  func invocationEnded(
    _ request: InvocationRequest,
    _ outcome: FunctionFigures.Outcome,
    status: Int?,
    after time: Duration,
    now: Duration
  ) -> Duration? {
    let name = request.function
    let (isShown, counted, wake) = tallies.withLock { tallies in
      var tally = tallies[name] ?? Tally(end: now + Self.window)
      var counted: Tally?
      if tally.end <= now {
        if !tally.leftOut.isEmpty { counted = tally }
        tally = Tally(end: now + Self.window)
      }
      defer { tallies[name] = tally }
      guard tally.lines >= Self.linesMax else {
        tally.lines += 1
        return (true, counted, Duration?.none)
      }
      let isFirst = tally.leftOut.isEmpty
      tally.leftOut[outcome, default: 0] += 1
      return (false, counted, isFirst ? tally.end : nil)
    }
    if let counted { write(counted, of: name) }
    guard isShown else { return wake }
    let due = now + Self.holdTime
    let line = line(request, outcome, status: status, after: time, due: due)
    held.withLock { $0.append(line) }
    return due
  }

  /// Writes the lines that were held long enough, and the counts of the seconds that are over.
  ///
  /// Returns the time of the next call that is necessary for a held line; nil if there is none.
  func writeDue(now: Duration) -> Duration? {
    let next = held.withLock { held in
      while let line = held.first, line.due <= now {
        held.removeFirst()
        log.append(
          function: line.function,
          level: "info",
          message: line.message,
          invocation: line.invocation,
          trace: line.trace,
          end: line.end
        )
      }
      return held.first?.due
    }
    writeCounts(now: now)
    return next
  }

  /// True if the ends of some invocations are not in the log yet.
  var isHolding: Bool { held.withLock { !$0.isEmpty } }

  /// Writes all lines that are still held, and the counts of the seconds that are over then.
  func writeHeld(after now: Duration) {
    _ = writeDue(now: now + Self.holdTime)
  }

  private func writeCounts(now: Duration) {
    let due = tallies.withLock { tallies in
      let due = tallies.filter { $0.value.end <= now }
      for name in due.keys { tallies[name] = nil }
      return due
    }
    for (name, tally) in due where !tally.leftOut.isEmpty { write(tally, of: name) }
  }

  private func line(
    _ request: InvocationRequest,
    _ outcome: FunctionFigures.Outcome,
    status: Int?,
    after time: Duration,
    due: Duration
  ) -> HeldLine {
    let milliseconds = (time / .microseconds(1)).rounded() / 1_000
    let end = InvocationEnd(
      outcome: outcome.rawValue,
      milliseconds: milliseconds,
      caller: request.caller,
      suiteTime: suiteTime()
    )
    let shown = milliseconds < 10 ? (milliseconds * 10).rounded() / 10 : milliseconds.rounded()
    let number = shown == shown.rounded() ? String(Int(shown)) : String(shown)
    return HeldLine(
      due: due,
      function: request.function,
      message: "\(outcome.text(status)) in \(number) ms",
      invocation: request.id,
      trace: request.traceID,
      end: end
    )
  }

  private func write(_ tally: Tally, of name: String) {
    let parts = FunctionFigures.Outcome.allCases.compactMap { outcome in
      tally.leftOut[outcome].map { "\($0) \(outcome.text(nil))" }
    }
    log.append(
      function: name,
      level: "info",
      message: "and more invocations in the same second: \(parts.joined(separator: ", "))",
      end: InvocationEnd(outcome: "several", milliseconds: 0, caller: nil)
    )
  }
}

extension FunctionFigures.Outcome {
  /// The past tense of the outcome, with the status of the response if that says more.
  fileprivate func text(_ status: Int?) -> String {
    let with = status.map { " with \($0)" } ?? ""
    return switch self {
    case .ok: "succeeded"
    case .refused: "refused\(with)"
    case .failed: "failed\(with)"
    case .crashed: "crashed"
    case .timedOut: "timed out"
    case .cancelled: "cancelled by the caller"
    case .notRun: "not run"
    }
  }
}

extension InvocationRequest {
  /// The event, the user or the administrator that makes the function run, in a few words.
  ///
  /// Nil for a request without credentials. The words hold no token and no secret.
  fileprivate var caller: String? {
    let fields = head.headerFields
    if let type = fields[Header.eventType] {
      let parts = type.split(separator: ".").map(String.init)
      let isOfData = [Header.documentEvents, Header.valueEvents].contains { type.hasPrefix($0) }
      let kind = isOfData ? parts.last { $0 != "withAuthContext" } ?? type : type
      return (fields[Header.document] ?? fields[Header.subject]).map { "\(kind) \($0)" } ?? kind
    }
    if let queue = fields[Header.queue] {
      return "task \(fields[Header.task] ?? "") of \(queue)"
    }
    if fields[Header.schedule] != nil { return "schedule" }
    guard let authorization = fields[.authorization] else { return nil }
    // Other credentials are for the function itself.
    switch try? CredentialReader(mode: .emulator).authenticate(authorization: authorization) {
    case .admin: return "administrator"
    case .user(let user): return user.uid
    case .unauthenticated, nil: return nil
    }
  }

  /// The id of the request's trace, as the lines of the function carry it.
  fileprivate var traceID: String? {
    head.headerFields[.traceParent]?.split(separator: "-").dropFirst().first.map(String.init)
  }

  private enum Header {
    static let eventType = fieldName("ce-type")
    static let subject = fieldName("ce-subject")
    static let document = fieldName("ce-document")
    static let queue = fieldName("x-cloudtasks-queuename")
    static let task = fieldName("x-cloudtasks-taskname")
    static let schedule = fieldName("x-cloudscheduler")
    static let documentEvents = "google.cloud.firestore.document."
    static let valueEvents = "google.firebase.database.ref."
  }
}
