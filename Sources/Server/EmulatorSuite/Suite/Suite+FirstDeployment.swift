import DatabaseTree
import Deployment
import Foundation
import HTTPSupport
import JSONText
import Logging
import RealtimeDatabaseEmulator
import Manifests
import SQLiteStorage
import StorageEngine
import Synchronization
import TriggerDelivery
import WorkerPool

/// The steps that follow once all services listen.
extension Suite {
  /// Serves the last deployment, opens the control API, then builds and deploys the functions.
  func deployFirst(_ parts: SuiteParts, _ database: RealtimeDatabaseService) async throws {
    let suite = description
    let deployer = deployer(parts, suite)
    let api = controlAPI(parts, database, deployer, suite)
    await deployer.restore()
    guard !Task.isCancelled else { return }
    control.withLock { $0 = api }
    let missing = try await ServerFile.write(
      suite,
      token: token,
      folder: folder.path,
      hasLocator: !configuration.isPrivate,
      version: configuration.version
    )
    for path in missing {
      logger(for: "hub").warning(
        "Commands outside this folder need --hub and HEARTH_TOKEN: a file cannot be written",
        metadata: ["file": "\(path)"]
      )
    }
    report(.listening(suite))
    // The watch starts now, so that changes during the first build are noticed.
    let watch = await sourceWatch(project: suite.project)
    let problem = await firstProblem(deployer)
    // A build that was interrupted by Ctrl-C has not failed.
    guard !Task.isCancelled else { return }
    report(.ready(suite, functions: api.functions(), problem: problem))
    guard let watch else { return }
    do {
      try await deployer.follow(watch, report: report)
    } catch is CancellationError {
    }
  }

  /// Deploys the functions if the configuration asks for it; returns the error message.
  private func firstProblem(_ deployer: Deployer) async -> String? {
    guard let functions = configuration.firstFunctions else { return nil }
    let report = self.report
    let problem = await deployer.deploy(builds: functions.builds, isAsked: false) { line in
      // The first line is part of the report of readiness; the further lines are reported here.
      let lines = line.text.split(separator: "\n").dropFirst().map(String.init)
      switch line.kind {
      case .progress: report(.deployProgress(line.text))
      case .deployed: for effect in lines { report(.deployProgress(effect)) }
      case .failed: break
      }
    }
    // A deployment that was interrupted by Ctrl-C has not failed.
    if problem != nil, !Task.isCancelled { deployer.fleet.giveUpFirstDeployment() }
    return problem
  }

  private func deployer(_ parts: SuiteParts, _ suite: SuiteDescription) -> Deployer {
    Deployer(
      controller: DeploymentController(
        configuration: .init(
          project: suite.project,
          folder: folder.deployments,
          environment: workerEnvironment(suite)
        ),
        starts: parts.starts,
        now: { Date() },
        logger: logger(for: "deployment"),
        validate: TriggerCheck.validate
      ) { [fleet = parts.fleet] in try await fleet.replaceFunctions($0) },
      deliveries: parts.deliveries,
      fleet: parts.fleet,
      source: configuration.functions?.source,
      logger: logger(for: "deployment")
    )
  }

  private func controlAPI(
    _ parts: SuiteParts,
    _ database: RealtimeDatabaseService,
    _ deployer: Deployer,
    _ suite: SuiteDescription
  ) -> ControlAPI {
    ControlAPI(
      project: suite.project,
      version: configuration.version,
      token: SecretToken(token),
      serverFile: ServerFile.path(folder: folder.path),
      description: { [storage] in
        var current = suite
        current.problem = storage.failure?.message
        return current
      },
      storage: storage,
      dataFolder: folder.path,
      roster: roster,
      documents: parts.documents,
      database: parts.database,
      databaseService: database,
      queries: parts.queries,
      rules: parts.rules,
      auth: parts.auth,
      fleet: parts.fleet,
      logs: parts.logs,
      deliveries: parts.deliveries,
      deployer: deployer,
      transfer: parts.transfer,
      deliveryRequest: DeliveryRequest(
        project: suite.project,
        location: FunctionEndpoint.defaultRegion
      ),
      time: parts.time,
      stopNotice: stopNotice,
      triggers: triggers,
      logger: logger(for: "hub")
    )
  }

  /// Returns a watch of the functions' sources if the configuration asks for one.
  private func sourceWatch(project: String) async -> SourceWatch? {
    guard let functions = configuration.functions, functions.isWatched else { return nil }
    let watch = SourceWatch(functions.source, project: project, excluding: [folder.path])
    await watch.begin()
    return watch
  }

  /// Returns the environment variables through which workers find the suite's services.
  private func workerEnvironment(_ suite: SuiteDescription) -> [String: String] {
    func address(_ service: SuiteService) -> String {
      suite.services[service.rawValue].map { "\($0.host):\($0.port)" } ?? ""
    }
    let databaseURL =
      "http://\(address(.database))/?ns=\(RealtimeDatabase.defaultInstance(of: suite.project))"
    return [
      "GCLOUD_PROJECT": suite.project,
      "FIREBASE_CONFIG": #"{"projectId":\#(jsonQuoted(suite.project)),"#
        + #""databaseURL":\#(jsonQuoted(databaseURL))}"#,
      "FUNCTIONS_EMULATOR": "true",
      "FIRESTORE_EMULATOR_HOST": address(.firestore),
      "FIREBASE_DATABASE_EMULATOR_HOST": address(.database),
      "FIREBASE_AUTH_EMULATOR_HOST": address(.auth),
      "CLOUD_TASKS_EMULATOR_HOST": address(.tasks),
      "FIREBASE_EMULATOR_HUB": address(.hub),
      "HEARTH_VECTORS_HOST": "http://\(address(.vectors))",
    ]
  }
}
