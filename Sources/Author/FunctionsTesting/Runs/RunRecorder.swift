import FlowControl
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Invocation
import Logging
import Synchronization

/// A record of the runs and log lines of a suite's functions.
final class RunRecorder: Sendable {
  /// The maximum number of recent runs and of recent lines that are kept.
  private static let keptMax = 50_000

  private struct State {
    var runs = RecentElements<FunctionRun>(countMax: keptMax)
    /// The positions of unfinished runs by invocation id, counted from the first run of the suite.
    var running: [String: Int] = [:]
    var counts: [String: Int] = [:]
    var lines = RecentElements<FunctionLogLine>(countMax: keptMax)
  }

  private let state = Mutex(State())

  /// The number of runs that have begun, including runs that are no longer kept.
  var count: Int { state.withLock { $0.runs.dropped + $0.runs.count } }

  /// The number of runs that have begun, by function.
  var counts: [String: Int] { state.withLock { $0.counts } }

  /// Returns the run of an invocation; nil if it is unknown or no longer kept.
  func run(_ invocationID: String) -> FunctionRun? {
    state.withLock { state in state.runs.last { $0.invocationID == invocationID } }
  }

  /// Returns the number of runs of a function that have begun.
  func count(of function: String) -> Int { state.withLock { $0.counts[function, default: 0] } }

  func runs(of function: String?) -> [FunctionRun] {
    state.withLock { state in
      state.runs.filter { function == nil || $0.function == function }
    }
  }

  func lines(of function: String?) -> [FunctionLogLine] {
    state.withLock { state in
      state.lines.filter { function == nil || $0.function == function }
    }
  }

  func began(_ request: InvocationRequest) {
    let fields = request.head.headerFields
    let run = FunctionRun(
      function: request.function,
      invocationID: request.id,
      document: fields[Self.documentField].map { percentDecoded($0) ?? $0 },
      eventID: fields[Self.eventField],
      attempt: fields[InvocationRequest.attemptHeader].flatMap { Int($0) } ?? 1,
      outcome: .running
    )
    state.withLock { state in
      state.counts[run.function, default: 0] += 1
      state.running[run.invocationID] = state.runs.dropped + state.runs.count
      state.runs.append(run)
    }
  }

  func ended(_ request: InvocationRequest, _ outcome: FunctionRun.Outcome) {
    state.withLock { state in
      guard let place = state.running.removeValue(forKey: request.id),
        place >= state.runs.dropped
      else { return }
      state.runs[place - state.runs.dropped].outcome = outcome
    }
  }

  /// Returns the last error that a run logged; nil if it logged none.
  func error(loggedBy invocationID: String) -> String? {
    state.withLock { state in
      state.lines.last { $0.invocationID == invocationID && $0.metadata["error"] != nil }?
        .metadata["error"]
    }
  }

  func append(_ line: FunctionLogLine) {
    state.withLock { $0.lines.append(line) }
  }

  /// Returns a logger whose lines are only kept in this record.
  func logger(of function: String) -> Logger {
    var logger = Logger(label: function) { _ in
      RecordingLogHandler(recorder: self, function: function)
    }
    logger.logLevel = .trace
    return logger
  }

  private static let documentField = fieldName("ce-document")
  private static let eventField = fieldName("ce-id")
}
