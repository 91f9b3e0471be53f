/// The starts that the server has not survived yet, as stored in `DATA/deployments/starting`.
struct StartHistory: Codable, Sendable, Equatable {
  /// The deployment that is being started, until the server has survived it.
  var starting: String?
  /// The number of consecutive starts that crashed the server, by deployment.
  private var deaths: [String: Int] = [:]

  /// The history for a new server, which counts an unfinished start as a crash.
  var afterRestart: StartHistory {
    var next = self
    next.starting = nil
    // Any process may write the file, so the number is kept from overflowing.
    if let starting { next.deaths[starting] = min(deaths(of: starting), Self.deathsMax) + 1 }
    return next
  }

  /// The crash-loop candidates: deployments whose start has crashed a server.
  var crashCandidates: Dictionary<String, Int>.Keys { deaths.keys }

  /// Returns the number of consecutive starts of a deployment that crashed the server.
  func deaths(of id: String) -> Int { deaths[id] ?? 0 }

  /// True if a deployment has crashed servers too often to be started automatically.
  func isCrashLooping(_ id: String) -> Bool { deaths(of: id) >= Self.deathsMax }

  /// Begins a start; the deployment takes over the crashes of `duplicate`, which has its binary.
  mutating func begin(_ id: String, takingOver duplicate: String?) {
    starting = id
    if let duplicate, let count = deaths.removeValue(forKey: duplicate) { deaths[id] = count }
  }

  /// Records that the server has survived the start of a deployment.
  mutating func survive(_ id: String) {
    guard starting == id else { return }
    starting = nil
    deaths[id] = nil
  }

  /// Ends the current start as survived, because the server stops in a regular way.
  mutating func stop() {
    if let starting { survive(starting) }
  }

  /// Removes deployments that no longer exist.
  mutating func forget(unless isKept: (String) -> Bool) {
    deaths = deaths.filter { isKept($0.key) }
  }

  /// The number of consecutive crashes after which automatic starts stop.
  ///
  /// One crash may be an impatient person who killed the server, and two may be a coincidence. The
  /// limit equals that of deliveries that crash their worker.
  static let deathsMax = 3
}
