/// The time by which a question has to be answered.
struct AssistantDeadline: Sendable {
  private let time: Duration
  private let elapsed: @Sendable () -> Duration

  /// A deadline a time from now, measured by a clock.
  init(after time: Duration, on clock: any Clock<Duration>) {
    self.time = time
    elapsed = Self.stopwatch(clock)
  }

  /// The time left; zero when it is over.
  var left: Duration { max(.zero, time - elapsed()) }

  /// Whether no time is left.
  var isOver: Bool { left == .zero }

  private static func stopwatch<C: Clock<Duration>>(_ clock: C) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }
}
