/// The starts of deployments that the server has not survived yet, as `DATA/deployments/starting`.
struct StartHistory: Codable, Sendable, Equatable {
  /// The deployment that is being started, until the server has survived it.
  var starting: String?
  /// By deployment, the starts in a row during which the server died.
  private var deaths: [String: Int] = [:]

  /// What a new server makes of it: a start that no server ended has killed the last one.
  var afterRestart: StartHistory {
    var next = self
    next.starting = nil
    // The file is anybody's to write, so the number is kept from overflowing.
    if let starting { next.deaths[starting] = min(deaths(of: starting), Self.deathsMax) + 1 }
    return next
  }

  /// The deployments that servers died of.
  var suspects: Dictionary<String, Int>.Keys { deaths.keys }

  /// The starts in a row during which the server died.
  func deaths(of id: String) -> Int { deaths[id] ?? 0 }

  /// Whether a server died so often that it must not start the deployment by itself.
  func isDeadly(_ id: String) -> Bool { deaths(of: id) >= Self.deathsMax }

  /// Begins a start; a deployment with the binary of `twin` takes over that one's deaths.
  mutating func begin(_ id: String, takingOver twin: String?) {
    starting = id
    if let twin, let count = deaths.removeValue(forKey: twin) { deaths[id] = count }
  }

  /// Notes that the server has survived the start of a deployment.
  mutating func survive(_ id: String) {
    guard starting == id else { return }
    starting = nil
    deaths[id] = nil
  }

  /// Ends every start, because the server stops as it was told to.
  mutating func stop() {
    if let starting { survive(starting) }
  }

  /// Forgets deployments that are gone.
  mutating func forget(unless isKept: (String) -> Bool) {
    deaths = deaths.filter { isKept($0.key) }
  }

  /// The deaths in a row after which a deployment is not started again by itself.
  ///
  /// One may be a person's impatience and two a bad day, as for a worker that crashes.
  static let deathsMax = 3
}
