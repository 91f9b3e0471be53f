import Invocation
import NIOCore
import Synchronization

/// The figures of a function since the server started, across all its deployments.
package struct FunctionFigures: Sendable, Hashable, Codable {
  /// The ways in which an invocation ends.
  package enum Outcome: String, Sendable, CaseIterable, Codable {
    /// The function responded with a status below 400.
    case ok
    /// The function responded with a status from 400 to 499, which blames the caller.
    case refused
    /// The function responded with a status of 500 or more, or its response was lost.
    case failed
    case crashed
    case timedOut
    /// The caller left before the response was complete.
    case cancelled
    /// No worker ran it, because none was available or the server or version was stopped.
    case notRun
  }

  /// The upper bounds of the duration buckets, in seconds; one more bucket has no upper bound.
  package static let timeBounds: [Double] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
  ]

  /// The number of invocations by the raw value of their `Outcome`.
  package var outcomes: [String: Int] = [:]
  /// The number of invocations per duration bucket, from arrival at the pool to end of response.
  package var times: [Int] = Array(repeating: 0, count: timeBounds.count + 1)
  /// The sum of the durations of all invocations, in seconds.
  package var secondsTotal: Double = 0
  package var workerStarts = 0
  package var workerCrashes = 0

  /// Creates the figures of a function without invocations.
  package init() {}

  /// The number of all invocations.
  package var count: Int { times.reduce(0, +) }

  /// Returns the duration that a share of the invocations did not exceed, in seconds.
  ///
  /// The result is an upper bound, because only buckets are kept; it is infinite in the last
  /// bucket. Nil before the first invocation.
  package func seconds(_ share: Double) -> Double? {
    guard count > 0 else { return nil }
    let wanted = Int((Double(count) * share).rounded(.up))
    var sum = 0
    for (time, bound) in zip(times, Self.timeBounds) {
      sum += time
      if sum >= wanted { return bound }
    }
    return .infinity
  }

  fileprivate mutating func add(_ outcome: Outcome, after time: Duration) {
    let seconds = time / .seconds(1)
    outcomes[outcome.rawValue, default: 0] += 1
    times[Self.timeBounds.firstIndex { seconds <= $0 } ?? Self.timeBounds.count] += 1
    secondsTotal += seconds
  }
}

/// The thread-safe counters of one function.
final class FunctionMeter: Sendable {
  private let state = Mutex(FunctionFigures())

  var figures: FunctionFigures { state.withLock { $0 } }

  func invocationEnded(_ outcome: FunctionFigures.Outcome, after time: Duration) {
    state.withLock { $0.add(outcome, after: time) }
  }

  func workerStarted() { state.withLock { $0.workerStarts += 1 } }

  func workerCrashed() { state.withLock { $0.workerCrashes += 1 } }
}

extension FunctionFigures.Outcome {
  /// Creates the outcome of a complete response.
  init(status: Int) {
    self = status < 400 ? .ok : status < 500 ? .refused : .failed
  }

  /// Creates the outcome of an invocation without a complete response.
  init(_ error: any Error) {
    switch (error as? InvocationError)?.kind {
    case .crashed: self = .crashed
    case .timedOut: self = .timedOut
    case .overloaded, .cannotStart, .placesTaken, .drained, .unserved, .notFound: self = .notRun
    case .failed: self = .failed
    case nil: self = .cancelled
    }
  }
}
