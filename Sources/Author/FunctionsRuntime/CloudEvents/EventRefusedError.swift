/// The reason why an event, a scheduled run or a task can never reach its handler.
struct EventRefusedError: Error {
  var message: String

  init(_ message: String) {
    self.message = message
  }
}
