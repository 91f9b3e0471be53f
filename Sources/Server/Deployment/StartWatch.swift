package import Logging

/// The record of deployment starts that prevents a crash loop of the server.
///
/// A deployment whose start crashes the server is not started again automatically. Each start is
/// recorded on disk before it begins. The record is removed once the server has served the
/// deployment for a while, or stops normally. If a new server finds a record, that start crashed
/// the previous server. If writing to disk fails, the deployment starts anyway.
package actor StartWatch {
  private let folder: DeploymentFolder
  private let clock: any Clock<Duration>
  private let logger: Logger
  /// The state on disk; nil before it is first read.
  private var history: StartHistory?
  /// The state before the start that is in progress.
  private var historyBefore = StartHistory()
  /// The deployments whose starts count as survived after `survivalTime`.
  private let startedIDs: AsyncStream<String>
  private let startedContinuation: AsyncStream<String>.Continuation

  /// Creates a record for the deployments in `folder`.
  ///
  /// Starts are counted as survived only while `run` is running.
  package init(
    folder: String,
    clock: any Clock<Duration> = ContinuousClock(),
    logger: Logger
  ) {
    self.folder = DeploymentFolder(path: folder)
    self.clock = clock
    self.logger = logger
    (startedIDs, startedContinuation) = AsyncStream.makeStream(
      bufferingPolicy: .bufferingNewest(1)
    )
  }

  /// Removes each start from the record once the server has survived it, until cancelled.
  package func run() async {
    for await id in startedIDs {
      // Cancellation means that the server stops; then `stop` removes the start, or it stays.
      guard (try? await clock.sleep(for: Self.survivalTime)) != nil else { return }
      change { $0.survive(id) }
    }
  }

  /// Records that the server stops normally, so no start in progress crashed it.
  package func stop() {
    guard history != nil else { return }
    change { $0.stop() }
  }

  /// Throws `DeploymentError` if starts of the deployment have crashed the server too often.
  func allow(_ id: String) throws {
    let starts = currentHistory()
    guard starts.isCrashLooping(id) else { return }
    throw DeploymentError(
      "Deployment \(id) is not started again by itself, because the server died during each of its "
        + "last \(starts.deaths(of: id)) starts. Events wait for it. `hearth functions rollback "
        + "\(id)` starts it nonetheless, `hearth functions rollback` the one before, and `hearth "
        + "deploy` a new one."
    )
  }

  /// Returns a deployment with the same binary that has crashed the server, if any.
  ///
  /// Throws `DeploymentError` if such a deployment has crashed it too often.
  func allow(newDeployment id: String) throws -> String? {
    let starts = currentHistory()
    let duplicates = starts.crashCandidates.sorted().filter { folder.haveSameBinary($0, id) }
    if let failed = duplicates.first(where: starts.isCrashLooping) {
      throw DeploymentError(
        "The functions are those of deployment \(failed), which is not started again by itself, "
          + "because the server died during each of its last \(starts.deaths(of: failed)) starts. "
          + "`hearth deploy` deploys them nonetheless."
      )
    }
    return duplicates.first
  }

  /// Records that a deployment is being started; it takes over the crashes of `duplicate`.
  func begin(_ id: String, duplicate: String?) {
    historyBefore = currentHistory()
    change { history in
      history.begin(id, takingOver: duplicate)
      history.forget { $0 == id || folder.exists($0) }
    }
  }

  /// Records that a deployment did not start, but that the server survived.
  func fail() {
    change { $0 = historyBefore }
    if let id = historyBefore.starting { startedContinuation.yield(id) }
  }

  /// Records that a deployment serves from now on.
  func succeed(_ id: String) {
    startedContinuation.yield(id)
  }

  private func currentHistory() -> StartHistory {
    if let history { return history }
    var found = StartHistory()
    do {
      found = try folder.starts()
    } catch {
      logger.warning(
        "The record of deployment starts cannot be read",
        metadata: ["error": "\(error)"]
      )
    }
    history = found.afterRestart
    return found.afterRestart
  }

  private func change(_ body: (inout StartHistory) -> Void) {
    var next = currentHistory()
    body(&next)
    history = next
    do {
      try folder.keep(next)
    } catch {
      logger.warning(
        "A deployment's start cannot be recorded on disk",
        metadata: ["error": "\(error)"]
      )
    }
  }

  /// The time that the server must serve a deployment to have survived its start.
  private static let survivalTime = Duration.milliseconds(250)
}
