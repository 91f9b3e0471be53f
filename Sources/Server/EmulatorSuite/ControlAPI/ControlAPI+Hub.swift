import Foundation
import HTTPMessages
import HTTPSupport
import TriggerDelivery

/// Routes of Firebase's emulator hub.
extension ControlAPI {
  func hub() throws -> Response {
    struct Hub: Encodable {
      var version: String
      var origins: [String]
      var pid: Int32
      var host: String
      var port: Int
    }
    let suite = description()
    let hub = suite.services["hub"] ?? ServiceAddress(host: "127.0.0.1", port: 0)
    return try .json(
      encoding: Hub(
        version: version,
        origins: ["http://\(hub.host):\(hub.port)"],
        pid: suite.pid,
        host: hub.host,
        port: hub.port
      )
    )
  }

  func emulators() throws -> Response {
    struct Emulator: Encodable {
      struct Listen: Encodable {
        var address: String
        var family: String
        var port: Int
      }
      var name: String
      var host: String
      var port: Int
      var listen: [Listen]
      var pid: Int32
    }
    let suite = description()
    let entries = suite.services.map { name, address in
      (
        name,
        Emulator(
          name: name,
          host: address.host,
          port: address.port,
          listen: [.init(address: address.host, family: "IPv4", port: address.port)],
          pid: suite.pid
        )
      )
    }
    return try .json(encoding: Dictionary(uniqueKeysWithValues: entries))
  }

  /// Handles `PUT /functions/disableBackgroundTriggers` and its counterpart.
  ///
  /// As in Firebase's emulator, events that occur while triggers are disabled never reach a
  /// function. Triggers are enabled again after `TriggerLease.offMax`, unless the lease is renewed,
  /// and after a restart. Events that occurred before are delivered first, which may take up to a
  /// minute.
  func setTriggers(enabled: Bool) async throws -> Response {
    try await triggers.set(enabled: enabled, in: deliveries)
    if !enabled {
      let deliveries = self.deliveries
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await deliveries.waitUntilStill() }
        group.addTask { try await Task.sleep(for: Self.flushTimeMax) }
        defer { group.cancelAll() }
        try await group.next()
      }
    }
    return .json(#"{"enabled":\#(enabled)}"#)
  }

  /// Handles `GET /hearth/v1/triggers`.
  func triggersDescription() -> TriggersDescription {
    let off = triggers.off
    return TriggersDescription(
      isEnabled: off == nil,
      offSeconds: off.map { $0.since / .seconds(1) },
      onAgainSeconds: off.map { $0.left / .seconds(1) },
      eventsSkipped: deliveries.eventsSkipped,
      isDeployed: deliveries.isDeployed,
      eventsBeforeDeployment: deliveries.eventsBeforeDeployment
    )
  }

  private static let flushTimeMax = Duration.seconds(60)
}
