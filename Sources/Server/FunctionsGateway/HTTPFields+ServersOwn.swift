import HTTPTypes

extension HTTPFields {
  /// The prefixes of headers that only the server may pass to functions.
  ///
  /// They carry the cause of an event, and the run data of Cloud Tasks and Cloud Scheduler.
  static let serversOwn = ["x-hearth-", "x-cloudtasks-", "x-cloudscheduler"]

  /// Removes headers with which a client could impersonate the server.
  mutating func removeServersOwn(prefixes: [String]) {
    func isServersOwn(_ field: HTTPField) -> Bool {
      prefixes.contains { field.name.canonicalName.hasPrefix($0) }
    }
    guard contains(where: isServersOwn) else { return }
    self = HTTPFields(filter { !isServersOwn($0) })
  }
}
