import Invocation
import NIOCore
import Synchronization

/// What a function has done since the server started, over all its deployments.
package struct FunctionFigures: Sendable, Hashable, Codable {
  /// How invocations ended.
  package enum Outcome: String, Sendable, CaseIterable, Codable {
    /// The function answered with a status below 400.
    case ok
    /// The function answered with 400 to 499: its caller is at fault.
    case refused
    /// The function answered with 500 or more.
    case failed
    case crashed
    case timedOut
    /// The caller left.
    case cancelled
    /// No worker ran it, for want of one or because of a stop.
    case notRun
  }

  /// The upper ends of the classes that times are counted in, in seconds; one more has no end.
  package static let timeBounds: [Double] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
  ]

  /// Invocations by their outcome's name.
  package var outcomes: [String: Int] = [:]
  /// Invocations by the class of their time, from their arrival at the pool to the end of the reply.
  package var times: [Int] = Array(repeating: 0, count: timeBounds.count + 1)
  /// The sum of these times.
  package var secondsTotal: Double = 0
  package var workerStarts = 0
  package var workerCrashes = 0

  /// Those of a function that has done nothing.
  package init() {}

  /// All invocations.
  package var count: Int { times.reduce(0, +) }

  /// How many seconds a share of the invocations took at most; nil before the first, and an upper
  /// bound, because only classes of times are kept.
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

/// Counts what one function does.
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
  /// The outcome of a reply.
  init(status: Int) {
    self = status < 400 ? .ok : status < 500 ? .refused : .failed
  }

  /// The outcome of an invocation without a reply, or with only part of one.
  init(_ error: any Error) {
    switch (error as? InvocationError)?.kind {
    case .crashed: self = .crashed
    case .timedOut: self = .timedOut
    case .overloaded, .cannotStart, .placesTaken, .drained, .notFound: self = .notRun
    case .failed: self = .failed
    case nil: self = .cancelled
    }
  }
}
