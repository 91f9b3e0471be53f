import Events
import Invocation

extension FunctionDescription {
  /// A deployed function with the URL or trigger that its endpoint gives it.
  init(name: String, endpoint: FunctionEndpoint, project: String, address: ServiceAddress) {
    let region = endpoint.regions[0]
    let url = "http://\(address.host):\(address.port)/\(project)/\(region)/\(name)"
    if let trigger = endpoint.eventTrigger {
      let filters = trigger.eventFilters.merging(trigger.eventFilterPathPatterns ?? [:]) { $1 }
      let kind = DocumentEventKind(eventType: trigger.eventType)?.rawValue ?? trigger.eventType
      self.init(
        name: name,
        kind: .trigger,
        trigger: "\(kind) \(filters["document"] ?? "")",
        url: nil
      )
    } else {
      self.init(
        name: name,
        kind: endpoint.callableTrigger == nil ? .http : .callable,
        trigger: nil,
        url: url
      )
    }
  }
}
