import Deployment
import EmulatorSuite
import JSONText
import Manifests
import OutboundHTTP

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
    findings.append(openPorts(of: suite))
    findings.append(try await rules(of: suite))
    findings += try await deployment(client)
    let functions = try await client.get("/hearth/v1/functions", as: [FunctionDescription].self)
    for function in functions {
      findings.append(Finding(function.name, .ok, function.trigger ?? function.url ?? ""))
    }
    findings += secrets(of: functions, suite, files)
    findings += try await triggers(client)
    findings += try await simulatedConditions(client)
    return findings + (try await events(client))
  }

  /// Reports which clients and web origins may use the ports.
  private func openPorts(of suite: SuiteDescription) -> Finding {
    Finding("open to", .ok, suite.openTo ?? "an older suite does not say")
  }

  /// Reports whom the rules in force keep from something.
  private func rules(of suite: SuiteDescription) async throws -> Finding {
    struct Reply: Decodable {
      struct Rules: Decodable { var files: [File] }
      struct File: Decodable {
        var name: String
        var content: String
      }
      var rules: Rules
    }
    guard let firestore = suite.services["firestore"] else {
      return Finding("security rules", .note, "this suite has no Firestore")
    }
    let response = try await OutboundClient().send(
      OutboundRequest(
        method: "GET",
        url: "http://\(firestore.host):\(firestore.port)/emulator/v1/projects/"
          + "\(suite.project.percentEncoded):securityRules"
      )
    )
    guard response.isSuccess,
      let file = try Reply(decodingJSON: response.body).rules.files.first
    else {
      return Finding(
        "security rules",
        .note,
        "none are in force, so everybody may read and write everything in Firestore; write "
          + "firestore.rules, and start without --no-rules"
      )
    }
    return rules(name: file.name, file.content)
  }

  private func deployment(_ client: ControlClient) async throws -> [Finding] {
    let all = try await client.get("/hearth/v1/deployments", as: [DeploymentDescription].self)
    guard let current = all.first(where: \.isCurrent) else {
      return [Finding("deployment", .fix, "no functions; run `hearth deploy`")]
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

  /// Checks that the secrets that functions declare are set; never shows their values.
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
            "not set; functions see none. `hearth functions config set --secret \(name)` "
              + "asks for it"
          ) : Finding("secret \(name)", .ok, "set (\(folder)/.secret.local)")
      }
    } catch {
      return [Finding("secrets", .fix, "\(error)")]
    }
  }

  /// Checks that events reach functions.
  private func triggers(_ client: ControlClient) async throws -> [Finding] {
    let triggers = try await client.get("/hearth/v1/triggers", as: TriggersDescription.self)
    var findings: [Finding] = []
    let passed = "\(counted(triggers.eventsSkipped, "event")) reached no function"
    if triggers.isEnabled {
      findings.append(
        triggers.eventsSkipped == 0
          ? Finding("triggers", .ok, "on")
          : Finding("triggers", .note, "on; \(passed) while they were off")
      )
    } else {
      let off = Int(triggers.offSeconds ?? 0)
      let left = Int((triggers.onAgainSeconds ?? 0).rounded(.up))
      findings.append(
        Finding(
          "triggers",
          .fix,
          "off for \(off) s, on again in \(left) s unless that is renewed; \(passed) so far. "
            + "`curl -X PUT http://\(client.address)/functions/enableBackgroundTriggers` turns "
            + "them on"
        )
      )
    }
    if let waiting = try await client.eventsBeforeDeployment() {
      findings.append(Finding("first deployment", .note, waiting))
    }
    return findings
  }

  /// Reports an advanced clock and planned faults, which explain much unexpected behavior.
  private func simulatedConditions(_ client: ControlClient) async throws -> [Finding] {
    struct Faults: Decodable {
      var seed: UInt64
      var duplicates: Double?
      var drops: Double?
      var reordering: Bool?
    }
    var findings: [Finding] = []
    let clock = try await client.get("/hearth/v1/clock", as: ClockDescription.self)
    // Smaller differences are corrections of the machine's clock.
    if clock.aheadSeconds >= 1 {
      findings.append(
        Finding(
          "clock",
          .note,
          "\(TimeSpan.text(clock.aheadSeconds)) ahead of the machine's: it is \(clock.now) in the "
            + "suite; a restart sets it back"
        )
      )
    }
    if let faults = try await client.get("/hearth/v1/faults", as: Faults?.self) {
      findings.append(
        Finding(
          "faults",
          .note,
          "planned with seed \(faults.seed): duplicates \(faults.duplicates ?? 0), drops "
            + "\(faults.drops ?? 0), reordering \(faults.reordering ?? false); "
            + "`hearth faults clear` ends them"
        )
      )
    }
    return findings
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
    let held = try await client.get("/hearth/v1/functions/stats", as: [FunctionStats].self)
      .filter { $0.waits != nil }
    let heldNames = Set(held.map(\.name))
    let waiting = try await list("pending", client).filter {
      ($0.attempts > 0 || $0.crashes > 0) && !heldNames.contains($0.function)
    }
    for function in held {
      // Events without a working worker may need a fix of the code. The other events wait because
      // of a user's action.
      let isBroken = function.waitReason == "noWorker"
      findings.append(
        Finding(
          "stuck events",
          isBroken ? .fix : .note,
          "\(function.pending) of \(function.name) wait: "
            + (function.waits?.split(separator: "\n").first ?? "")
        )
      )
    }
    guard !waiting.isEmpty || held.isEmpty else { return findings }
    findings.append(
      Finding(
        "stuck events",
        waiting.isEmpty ? .ok : .note,
        waiting.isEmpty
          ? "none"
          : "\(waiting.count) failed and wait for another attempt; see "
            + "`hearth events list --state pending`"
      )
    )
    return findings
  }

  private func list(_ state: String, _ client: ControlClient) async throws -> [EventDescription] {
    try await client.get("/hearth/v1/events?state=\(state)&limit=1000", as: [EventDescription].self)
  }
}
