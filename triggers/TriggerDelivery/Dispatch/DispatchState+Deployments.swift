package import DocumentModel

/// What a deployment changes for the functions that it lacks, and for those that are back.
extension DispatchState {
  /// The last deployment.
  struct Deployment: Sendable {
    var time: Timestamp
    /// How long the deliveries of a function wait that the deployment lacks.
    var keptFor: Duration
  }

  /// Takes over the limits of the deployed functions; those of all others wait.
  ///
  /// Returns which functions that have waiting deliveries are affected.
  mutating func deploy(
    _ limits: [String: DispatchLimits],
    now: Timestamp,
    keptFor: Duration
  ) -> DeploymentEffects {
    deployment = Deployment(time: now, keptFor: keptFor)
    for function in limits.keys { undeployedSince[function] = nil }
    update(limits: limits)
    var effects = DeploymentEffects()
    for (function, backlog) in backlogs {
      switch (limits[function] == nil, backlog.undeployed) {
      case (true, nil):
        let undeployed = undeployed(function, keptFor: keptFor, now: now)
        change(function) { $0.suspend(undeployed) }
        guard backlog.count > 0 else { continue }
        effects.suspended.append(
          .init(function, pendingCount: backlog.count, keptUntil: undeployed.until, keptFor)
        )
      case (false, let undeployed?):
        change(function) { $0.resume() }
        guard backlog.count > 0 else { continue }
        effects.resumed.append(
          .init(function, pendingCount: backlog.count, keptUntil: undeployed.until, keptFor)
        )
      case (true, .some), (false, nil): continue
      }
    }
    return effects.sorted
  }

  /// The state of a function that a deployment lacks; nil when it has the function.
  func undeployed(_ function: String) -> FunctionBacklog.Undeployed? {
    guard let deployment, !isDeployed(function) else { return nil }
    return undeployed(function, keptFor: deployment.keptFor, now: deployment.time)
  }

  private func undeployed(
    _ function: String,
    keptFor: Duration,
    now: Timestamp
  ) -> FunctionBacklog.Undeployed {
    let since = undeployedSince[function] ?? now
    return FunctionBacklog.Undeployed(since: since, until: since.advanced(by: keptFor))
  }

  /// The functions that have waiting deliveries and are not deployed.
  var undeployed: [String: FunctionBacklog.Undeployed] {
    backlogs.compactMapValues { $0.count > 0 ? $0.undeployed : nil }
  }
}

/// What a deployment does to deliveries that wait.
package struct DeploymentEffects: Sendable, Hashable {
  /// The waiting deliveries of one function.
  package struct Backlog: Sendable, Hashable {
    package var function: String
    package var pendingCount: Int
    /// When the deliveries are given up unless the function is deployed again.
    package var keptUntil: Timestamp
    /// How long they are kept in all.
    package var keptFor: Duration

    init(_ function: String, pendingCount: Int, keptUntil: Timestamp, _ keptFor: Duration) {
      self.function = function
      self.pendingCount = pendingCount
      self.keptUntil = keptUntil
      self.keptFor = keptFor
    }
  }

  /// Functions that are not deployed any more; their deliveries wait.
  package var suspended: [Backlog] = []
  /// Functions that are deployed again; their deliveries go on.
  package var resumed: [Backlog] = []

  fileprivate var sorted: DeploymentEffects {
    DeploymentEffects(
      suspended: suspended.sorted { $0.function < $1.function },
      resumed: resumed.sorted { $0.function < $1.function }
    )
  }

  /// A sentence on each function, for the person who deploys.
  package var sentences: [String] {
    let kept = suspended.map { backlog in
      let name = backlog.function
      let hours = Int(backlog.keptFor / .seconds(3600))
      let runs = backlog.pendingCount == 1 ? "runs" : "run"
      return
        "\(name) is no longer deployed; its \(backlog.waiting(" is", "s are")) kept for \(hours) "
        + "hours and \(runs) if \(name) is deployed again by then."
    }
    return kept
      + resumed.map {
        "\($0.function) is deployed again; its \($0.waiting("", "s")) will run."
      }
  }
}

extension DeploymentEffects.Backlog {
  /// The waiting events with a verb, one event or several.
  fileprivate func waiting(_ one: String, _ several: String) -> String {
    pendingCount == 1 ? "waiting event\(one)" : "\(pendingCount) waiting event\(several)"
  }
}
