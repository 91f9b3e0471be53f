import DequeModule
import DocumentModel
package import Invocation

/// How many deliveries of a function may run at once, and how fast they may start.
package struct DispatchLimits: Sendable, Hashable {
  /// Deliveries that run at the same time.
  package var concurrentMax: Int
  /// Starts in a second; nil for no bound.
  package var perSecondMax: Double?

  /// Limits.
  package init(concurrentMax: Int = Self.concurrentDefault, perSecondMax: Double? = nil) {
    self.concurrentMax = concurrentMax
    self.perSecondMax = perSecondMax
  }

  /// The limits of a deployed function; a task queue has Cloud Tasks' defaults.
  ///
  /// The limit never exceeds what the function's workers take, because the time that a delivery
  /// waits for a worker counts against it.
  package init(_ endpoint: FunctionEndpoint) {
    self.init()
    if let queue = endpoint.taskQueueTrigger {
      concurrentMax = max(1, queue.rateLimits?.maxConcurrentDispatches ?? 1000)
      perSecondMax = max(0.001, queue.rateLimits?.maxDispatchesPerSecond ?? 500)
    }
    concurrentMax = min(concurrentMax, endpoint.capacity)
  }

  /// As many as two workers take.
  package static let concurrentDefault = 2 * FunctionEndpoint.concurrencyDefault
}

/// The due deliveries of one function, and how many of them may start.
struct FunctionQueue: Sendable {
  var limits: DispatchLimits
  var ready: Deque<DeliveryID> = []
  var running = 0
  /// Whether somebody has stopped the queue.
  var isPaused = false
  private var tokens: Double
  private var filledTime: Timestamp?

  init(limits: DispatchLimits) {
    self.limits = limits
    tokens = Self.capacity(limits)
  }

  /// Takes over new limits.
  mutating func update(_ limits: DispatchLimits) {
    guard limits != self.limits else { return }
    self.limits = limits
    tokens = min(tokens, Self.capacity(limits))
  }

  /// Whether one more delivery may start at `now`.
  mutating func mayStart(now: Timestamp) -> Bool {
    guard !isPaused, running < limits.concurrentMax else { return false }
    fill(now: now)
    return limits.perSecondMax == nil || tokens >= 1
  }

  /// Notes a start.
  mutating func started() {
    running += 1
    if limits.perSecondMax != nil { tokens -= 1 }
  }

  /// When the rate lets the next delivery start; nil when the rate does not hold it up.
  var rateTime: Timestamp? {
    guard let rate = limits.perSecondMax, let filledTime, tokens < 1, !isPaused,
      running < limits.concurrentMax, !ready.isEmpty
    else { return nil }
    // One microsecond is added, so that rounding does not cause a wake in vain.
    return filledTime.advanced(by: .seconds((1 - tokens) / rate) + .microseconds(1))
  }

  /// Whether no delivery of the queue starts at `now`, or later unless time passes.
  func isStill(at now: Timestamp) -> Bool {
    isPaused || ready.isEmpty || rateTime.map { $0 > now } ?? false
  }

  private mutating func fill(now: Timestamp) {
    guard let rate = limits.perSecondMax else { return }
    if let filledTime, now > filledTime {
      tokens += now.duration(since: filledTime) / .seconds(1) * rate
    }
    tokens = min(tokens, Self.capacity(limits))
    filledTime = max(filledTime ?? now, now)
  }

  /// The size of the bucket: the tasks of a tenth of a second, at least one.
  ///
  /// The bucket begins full; its small size spreads the tasks evenly.
  private static func capacity(_ limits: DispatchLimits) -> Double {
    max(1, (limits.perSecondMax ?? 0) / 10)
  }
}
