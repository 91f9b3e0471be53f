import Deployment

extension Deployer {
  /// Deploys whenever the functions' sources change, until the task is cancelled.
  func follow(
    _ watch: SourceWatch,
    report: @escaping @Sendable (SuiteReport) -> Void
  ) async throws {
    try await watch.run { request in await take(up: request, report: report) }
  }

  /// Carries out a request of the watch; returns false if another deployment is in progress.
  private func take(
    up request: SourceWatch.Request,
    report: @escaping @Sendable (SuiteReport) -> Void
  ) async -> Bool {
    switch request {
    case .build(let files):
      report(.watched("\(Self.names(files)) changed; building …", isProblem: false))
      do {
        let line = try await deployOnce(builds: true) { report(.deployProgress($0)) }
        report(.watched(line, isProblem: false))
      } catch {
        if (error as? DeploymentError)?.isBusy == true { return false }
        report(.watched(explanation(of: error), isProblem: true))
      }
    case .reload(let files):
      do {
        guard try await reload() else { return true }
        let text = "\(Self.names(files)) changed; the functions were restarted."
        report(.watched(text, isProblem: false))
      } catch {
        if (error as? DeploymentError)?.isBusy == true { return false }
        report(.watched(explanation(of: error), isProblem: true))
      }
    case .pause(let files):
      report(
        .watched(
          "\(Self.names(files)) changed during each of the last builds, so the build itself seems "
            + "to write there. The next build begins when something changes after this one.",
          isProblem: true
        )
      )
    }
    return true
  }

  private static func names(_ files: [String]) -> String {
    let names = files.prefix(3).map { $0.split(separator: "/").last.map(String.init) ?? $0 }
    let more = files.count - names.count
    return names.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
  }
}
