import Events
import Manifests

extension FunctionDescription {
  /// Creates the description of a deployed function, with a URL or trigger from its endpoint.
  init(name: String, endpoint: FunctionEndpoint, project: String, address: ServiceAddress) {
    let region = endpoint.regions[0]
    let url = "http://\(address.host):\(address.port)/\(project)/\(region)/\(name)"
    if let trigger = endpoint.eventTrigger {
      let filters = trigger.eventFilters.merging(trigger.eventFilterPathPatterns ?? [:]) { $1 }
      let value = DatabaseEventType(name: trigger.eventType).map { "value \($0.kind.rawValue)" }
      let kind =
        DocumentEventType(name: trigger.eventType)?.kind.rawValue ?? value
        ?? Self.userEvents[trigger.eventType] ?? trigger.eventType
      let path = (filters["document"] ?? filters["ref"]).map { " \($0)" } ?? ""
      self.init(name: name, kind: .trigger, trigger: kind + path, url: nil)
    } else if let trigger = endpoint.scheduleTrigger {
      let zone = trigger.timeZone.map { " (\($0))" } ?? ""
      self.init(name: name, kind: .schedule, trigger: trigger.schedule + zone, url: nil)
    } else if endpoint.taskQueueTrigger != nil {
      self.init(name: name, kind: .task, trigger: "tasks of queue \(name)", url: nil)
    } else if let trigger = endpoint.blockingTrigger {
      let event = trigger.eventType.split(separator: ".").last.map(String.init) ?? ""
      self.init(name: name, kind: .blocking, trigger: "Auth's \(event)", url: nil)
    } else {
      self.init(
        name: name,
        kind: endpoint.callableTrigger == nil ? .http : .callable,
        trigger: nil,
        url: url
      )
    }
    secrets = endpoint.secretEnvironmentVariables.map { $0.map(\.key) }
  }

  private static let userEvents = [
    "google.firebase.auth.user.v1.created": "user created",
    "google.firebase.auth.user.v1.deleted": "user deleted",
  ]
}
