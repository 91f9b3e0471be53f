/// The deadline for the answer to a question.
struct AssistantDeadline: Sendable {
  private let time: Duration
  private let elapsed: @Sendable () -> Duration

  /// Creates a deadline that is the given time from now, measured by a clock.
  init(after time: Duration, on clock: any Clock<Duration>) {
    self.time = time
    elapsed = Self.stopwatch(clock)
  }

  /// The remaining time; zero after the deadline.
  var left: Duration { max(.zero, time - elapsed()) }

  /// True if no time is left.
  var isOver: Bool { left == .zero }

  private static func stopwatch<C: Clock<Duration>>(_ clock: C) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }
}
