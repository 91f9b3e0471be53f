/// When the function that the present work belongs to must have ended.
///
/// A worker sets it around a handler; a client below it does not try again beyond it.
package enum InvocationDeadline {
  /// The time; nil outside of invocations, and in tasks that a function detached from its own.
  @TaskLocal package static var current: ContinuousClock.Instant?
}
