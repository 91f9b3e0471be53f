import HTTPTypes

extension HTTPFields {
  /// The beginnings of headers that only the server gives to functions: the cause of an event, and
  /// what Cloud Tasks and Cloud Scheduler say of a run.
  static let serversOwn = ["x-hearth-", "x-cloudtasks-", "x-cloudscheduler"]

  /// Takes out headers by which a client would pass for the server.
  mutating func removeServersOwn(prefixes: [String]) {
    func isServersOwn(_ field: HTTPField) -> Bool {
      prefixes.contains { field.name.canonicalName.hasPrefix($0) }
    }
    guard contains(where: isServersOwn) else { return }
    self = HTTPFields(filter { !isServersOwn($0) })
  }
}
