import FlowControl
import HTTPSupport
import Logging
import Manifests
import StatusCodes

/// Finding the function that a request calls, and the refusals that list the functions there are.
extension FunctionsService {
  /// The maximum number of names in a 404.
  private static let namesMax = 100

  /// Returns the function at an address; fails with a 404 that says what is there.
  ///
  /// While a deployment is not served yet, a missing function is a 503, which clients retry.
  func lookUp(_ target: FunctionTarget) -> Result<FunctionEndpoint, StatusError> {
    func refused(_ message: String) -> Result<FunctionEndpoint, StatusError> {
      .failure(StatusError(.notFound, message))
    }
    guard !target.name.isEmpty else {
      return refused("A function is called at /\(project)/REGION/NAME. \(names())")
    }
    guard target.project == project else {
      if loggedProjects.isNew(target.project) {
        logger.warning(
          """
          Calls to project \(target.project); this suite serves \(project). Correct the client's \
          project, or start with --project.
          """
        )
      }
      return refused("This server runs project \(project), not \(target.project). \(names())")
    }
    // Asked first: once no deployment is unserved, `functions` has all there are.
    let reason = unserved()
    guard let endpoint = functions()[target.name] else {
      return .failure(missing(target.name, reason))
    }
    guard endpoint.regions.contains(target.region) else {
      let regions = endpoint.regions.joined(separator: ", ")
      return refused("The function \(target.name) is in region \(regions), not \(target.region).")
    }
    guard endpoint.eventTrigger == nil else {
      return refused(
        "The function \(target.name) is triggered by events and cannot be called; "
          + "`hearth fire \(target.name)` sends it one. \(names())"
      )
    }
    return .success(endpoint)
  }

  /// Returns the error for a missing function; `reason` is that of an unserved deployment.
  private func missing(_ name: String, _ reason: String?) -> StatusError {
    reason.map { StatusError(.unavailable, $0) } ?? StatusError(.notFound, notFound(name))
  }

  func notFound(_ name: String) -> String {
    "There is no function named \(name). \(names())"
  }

  private func names() -> String {
    let callable = functions().filter { $0.value.eventTrigger == nil }
    guard !callable.isEmpty else { return "No function that can be called is deployed." }
    let names = callable.map { "\($0.value.regions[0])/\($0.key)" }.sorted()
    let more = names.count > Self.namesMax ? " and \(names.count - Self.namesMax) more" : ""
    return "Functions: \(names.prefix(Self.namesMax).joined(separator: ", "))\(more)."
  }
}
