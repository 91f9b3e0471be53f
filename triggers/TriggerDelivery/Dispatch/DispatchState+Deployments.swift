package import DocumentModel

/// The effects of a deployment on functions that are missing or deployed again.
extension DispatchState {
  struct Deployment: Sendable {
    var time: Timestamp
    /// The time for which deliveries of an undeployed function are kept.
    var keptFor: Duration
  }

  /// Applies the limits of the deployed functions and suspends all other functions.
  ///
  /// Returns the affected functions that have waiting deliveries.
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

  /// Returns the undeployed state of a function.
  ///
  /// Returns nil if the function is deployed, or before the first deployment.
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

  /// The undeployed functions that have waiting deliveries.
  var undeployed: [String: FunctionBacklog.Undeployed] {
    backlogs.compactMapValues { $0.count > 0 ? $0.undeployed : nil }
  }
}

/// The effects of a deployment on waiting deliveries.
package struct DeploymentEffects: Sendable, Hashable {
  /// The waiting deliveries of one function.
  package struct Backlog: Sendable, Hashable {
    package var function: String
    package var pendingCount: Int
    /// The time at which the deliveries are given up unless the function is deployed again.
    package var keptUntil: Timestamp
    /// The total time for which the deliveries are kept.
    package var keptFor: Duration

    init(_ function: String, pendingCount: Int, keptUntil: Timestamp, _ keptFor: Duration) {
      self.function = function
      self.pendingCount = pendingCount
      self.keptUntil = keptUntil
      self.keptFor = keptFor
    }
  }

  /// The functions that are no longer deployed; their deliveries wait.
  package var suspended: [Backlog] = []
  /// The functions that are deployed again; their deliveries continue.
  package var resumed: [Backlog] = []

  fileprivate var sorted: DeploymentEffects {
    DeploymentEffects(
      suspended: suspended.sorted { $0.function < $1.function },
      resumed: resumed.sorted { $0.function < $1.function }
    )
  }

  /// One sentence about each function, for the developer who deploys.
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
  /// Returns the waiting events with a verb, in singular or plural.
  fileprivate func waiting(_ one: String, _ several: String) -> String {
    pendingCount == 1 ? "waiting event\(one)" : "\(pendingCount) waiting event\(several)"
  }
}
