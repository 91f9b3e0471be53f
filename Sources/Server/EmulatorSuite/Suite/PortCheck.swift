import HTTPSupport
package import StatusCodes

/// The error of a suite whose ports other programs have, all of them at once.
package struct TakenPortsError: StatusConvertible {
  /// The services whose ports are taken, in the order of `SuiteService`.
  package var services: [SuiteService]
  package var statusCode: StatusCode { .alreadyExists }
  package let statusMessage: String

  init(_ taken: [(service: SuiteService, address: ServerAddress)]) {
    services = taken.map(\.service)
    let list = taken.map { "\($0.address) (\($0.service.title))" }.joined(separator: ", ")
    statusMessage =
      taken.count == 1
      ? "\(list) is in use by another program" : "these are in use by other programs: \(list)"
  }
}

extension SuiteConfiguration {
  /// Returns the configuration in which no service tries a port that another one must have.
  func yieldingPorts() -> SuiteConfiguration {
    var result = self
    let fixed = services.filter { !movable.contains($0) }.compactMap { ports[$0] }
    for service in movable where ports[service].map(fixed.contains) == true {
      result.ports[service] = 0
    }
    return result
  }

  /// Throws if two services have the same address, or `TakenPortsError` if another program has one.
  ///
  /// A port may be taken between this check and the service's start; then the service reports it.
  func checkPorts() async throws {
    var taken: [(service: SuiteService, address: ServerAddress)] = []
    var owners: [ServerAddress: SuiteService] = [:]
    for service in services {
      guard let port = ports[service], port != 0, !movable.contains(service) else { continue }
      let address = ServerAddress.tcp(host: host(of: service), port: port)
      if let owner = owners.updateValue(service, forKey: address) {
        throw StatusError(
          .invalidArgument,
          "\(owner.title) and \(service.title) would both listen on \(address); give one of them "
            + "another port with --\(service.rawValue)-port or in firebase.json."
        )
      }
      if await address.isInUse() { taken.append((service, address)) }
    }
    guard taken.isEmpty else { throw TakenPortsError(taken) }
  }
}
