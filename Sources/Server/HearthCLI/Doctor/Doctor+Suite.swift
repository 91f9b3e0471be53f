import Deployment
import EmulatorSuite
import Foundation
import Invocation

extension Doctor {
  /// Checks the running suite, its deployment and its events.
  func health(of client: ControlClient, _ files: ProjectFiles) async throws -> [Finding] {
    struct Hub: Decodable { var version: String }
    let suite = try await client.get("/hearth/v1/suite", as: SuiteDescription.self)
    let version = try await client.get("/", as: Hub.self).version
    var findings = [
      Finding("suite", .ok, "running at \(client.address), pid \(suite.pid)"),
      Finding(
        "version",
        isWell: version == Version.current,
        version == Version.current
          ? version
          : "the suite is \(version), this command \(Version.current); start the suite again"
      ),
      Finding("storage", isWell: suite.problem == nil, suite.problem ?? "takes writes"),
    ]
    for (name, address) in suite.services.sorted(by: { $0.key < $1.key }) {
      findings.append(Finding("port of \(name)", .ok, "\(address.host):\(address.port)"))
    }
    findings.append(doors(of: suite))
    findings += try await deployment(client)
    let functions = try await client.get("/hearth/v1/functions", as: [FunctionDescription].self)
    for function in functions {
      findings.append(Finding(function.name, .ok, function.trigger ?? function.url ?? ""))
    }
    findings += secrets(of: functions, suite, files)
    return findings + (try await events(client))
  }

  /// Who may use the ports.
  private func doors(of suite: SuiteDescription) -> Finding {
    Finding("open to", .ok, suite.openTo ?? "an older suite does not say")
  }

  private func deployment(_ client: ControlClient) async throws -> [Finding] {
    let all = try await client.get("/hearth/v1/deployments", as: [DeploymentDescription].self)
    guard let current = all.first(where: \.isCurrent) else {
      return [Finding("deployment", .mend, "no functions; run `hearth deploy`")]
    }
    let own = FunctionManifest(endpoints: [:]).specVersion
    let count = counted(current.functions.count, "function")
    return [
      Finding(
        "deployment",
        isWell: !current.functions.isEmpty,
        current.functions.isEmpty
          ? "\(current.id) has no functions; run `hearth deploy`" : "\(current.id), \(count)"
      ),
      Finding(
        "worker protocol",
        isWell: current.protocolVersion == own,
        current.protocolVersion == own
          ? own
          : "the functions speak \(current.protocolVersion), the suite \(own); build both from the "
            + "same version and run `hearth deploy`"
      ),
    ]
  }

  /// Checks that the secrets which functions declare exist; never shows their values.
  private func secrets(
    of functions: [FunctionDescription],
    _ suite: SuiteDescription,
    _ files: ProjectFiles
  ) -> [Finding] {
    let names = Set(functions.flatMap { $0.secrets ?? [] }).sorted()
    guard !names.isEmpty else { return [] }
    let folder = files.functionsSource ?? files.folder
    do {
      let environment = try UserEnvironment(folder: folder, project: suite.project)
      return names.map { name in
        environment.secrets[name] == nil
          ? Finding(
            "secret \(name)",
            .note,
            "not set; functions see none. Write \(name)=… to \(folder)/.secret.local"
          ) : Finding("secret \(name)", .ok, "set (\(folder)/.secret.local)")
      }
    } catch {
      return [Finding("secrets", .mend, "\(error)")]
    }
  }

  private func events(_ client: ControlClient) async throws -> [Finding] {
    var findings: [Finding] = []
    for state in ["failed", "dead"] {
      let stuck = try await list(state, client)
      findings.append(
        Finding(
          "\(state) events",
          isWell: stuck.isEmpty,
          stuck.isEmpty
            ? "none"
            : "\(stuck.count); see `hearth events list --state \(state)`, then "
              + "`hearth events retry --all --state \(state)` or `hearth events discard …`"
        )
      )
    }
    let waiting = try await list("pending", client).filter { $0.attempts > 0 || $0.crashes > 0 }
    findings.append(
      Finding(
        "stuck events",
        waiting.isEmpty ? .ok : .note,
        waiting.isEmpty
          ? "none"
          : "\(waiting.count) failed and wait for another try; see "
            + "`hearth events list --state pending`"
      )
    )
    return findings
  }

  private func list(_ state: String, _ client: ControlClient) async throws -> [EventDescription] {
    try await client.get("/hearth/v1/events?state=\(state)&limit=1000", as: [EventDescription].self)
  }
}
