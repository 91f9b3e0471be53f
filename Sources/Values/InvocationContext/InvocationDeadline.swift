/// The time by which the function that the current work belongs to must have ended.
///
/// A worker sets it around a handler. Clients that the handler uses do not retry beyond it.
package enum InvocationDeadline {
  /// The deadline; nil outside invocations and in detached tasks.
  @TaskLocal package static var current: ContinuousClock.Instant?
}
