/// Why an event, a scheduled run or a task cannot reach its handler, now or ever.
struct EventRefusal: Error {
  var message: String

  init(_ message: String) {
    self.message = message
  }
}
