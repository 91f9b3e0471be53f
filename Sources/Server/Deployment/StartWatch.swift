package import Logging

/// Keeps a deployment whose start kills the server from being started again by itself.
///
/// Each start is on disk before anything of it happens, and stays there until the server has served
/// it for a while, or stops as it was told to. What a new server finds there killed the last one.
/// When the disk takes no such note, the deployment starts all the same.
package actor StartWatch {
  private let folder: DeploymentFolder
  private let clock: any Clock<Duration>
  private let logger: Logger
  /// What is on disk; nil before it was read.
  private var history: StartHistory?
  /// What was known before the start that is under way.
  private var before = StartHistory()
  private let served: AsyncStream<String>
  private let serve: AsyncStream<String>.Continuation

  /// A watch of the deployments in `DATA/deployments`; `run` must run for starts to be survived.
  package init(
    folder: String,
    clock: any Clock<Duration> = ContinuousClock(),
    logger: Logger
  ) {
    self.folder = DeploymentFolder(path: folder)
    self.clock = clock
    self.logger = logger
    (served, serve) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Takes each start off the record once the server has survived it, until cancelled.
  package func run() async {
    for await id in served {
      // Cancellation means that the server stops, and `stop` or nobody takes the start back.
      guard (try? await clock.sleep(for: Self.survivalTime)) != nil else { return }
      change { $0.survive(id) }
    }
  }

  /// Notes that the server stops as it was told to; a start under way was not its end.
  package func stop() {
    guard history != nil else { return }
    change { $0.stop() }
  }

  /// Throws `DeploymentError` when the server died too often during a deployment's start.
  func allow(_ id: String) throws {
    guard known().isDeadly(id) else { return }
    throw DeploymentError(
      "Deployment \(id) is not started again by itself, because the server died during each of its "
        + "last \(known().deaths(of: id)) starts. Events wait for it. `hearth functions rollback "
        + "\(id)` starts it nonetheless, `hearth functions rollback` the one before, and `hearth "
        + "deploy` a new one."
    )
  }

  /// The deployment with the same binary during whose start the server died, if there is one.
  ///
  /// Throws `DeploymentError` when it died too often.
  func allow(newcomer id: String) throws -> String? {
    let twins = known().suspects.sorted().filter { folder.haveSameBinary($0, id) }
    if let deadly = twins.first(where: known().isDeadly) {
      throw DeploymentError(
        "The functions are those of deployment \(deadly), which is not started again by itself, "
          + "because the server died during each of its last \(known().deaths(of: deadly)) starts. "
          + "`hearth deploy` deploys them nonetheless."
      )
    }
    return twins.first
  }

  /// Notes that a deployment is being started; a newcomer takes over the deaths of its `twin`.
  func begin(_ id: String, twin: String?) {
    before = known()
    change { history in
      history.begin(id, takingOver: twin)
      history.forget { $0 == id || folder.exists($0) }
    }
  }

  /// Notes that a deployment did not start and that the server lives.
  func fail() {
    change { $0 = before }
    if let id = before.starting { serve.yield(id) }
  }

  /// Notes that a deployment serves from now on.
  func succeed(_ id: String) {
    serve.yield(id)
  }

  private func known() -> StartHistory {
    if let history { return history }
    var found = StartHistory()
    do {
      found = try folder.starts()
    } catch {
      logger.warning(
        "It cannot be read whether the server survived the last deployment's start",
        metadata: ["error": "\(error)"]
      )
    }
    history = found.afterRestart
    return found.afterRestart
  }

  private func change(_ body: (inout StartHistory) -> Void) {
    var next = known()
    body(&next)
    history = next
    do {
      try folder.keep(next)
    } catch {
      logger.warning(
        "A deployment's start cannot be noted on disk",
        metadata: ["error": "\(error)"]
      )
    }
  }

  /// How long the server must serve a deployment to have survived its start.
  private static let survivalTime = Duration.milliseconds(250)
}
