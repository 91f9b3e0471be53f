import FlowControl
import Logging
import Synchronization

/// The handling of a shortage: workers wait, and too few places are free.
extension FleetContext {
  /// The minimum time between two log lines that report the holders of places.
  static let shortageLogPeriod = Duration.seconds(60)
  /// The most holders and waiting functions that a message names; there may be hundreds.
  private static let namesMax = 5

  /// Ends replaced versions to free places for waiting first workers, and reports the rest.
  ///
  /// Idle workers have already given up their places by then.
  func relieveShortage(_ now: Duration) {
    while let version = nextToEnd(now) { version.drain() }
    let waiting = state.withLock { state -> [FunctionVersion] in
      let owners = Set(state.gate.lackingFirst)
      guard !owners.isEmpty else { return [] }
      let versions = state.queued.values.lazy.map(\.version).filter { owners.contains($0.owner) }
      return Array(Dictionary(versions.map { ($0.owner, $0) }) { first, _ in first }.values)
    }
    for version in waiting { version.placeMissing() }
    logShortage(now)
  }

  /// True if workers of a version wait because no place is left for them.
  func lacksPlace(_ owner: PlaceOwner) -> Bool { state.withLock { $0.gate.lacksPlace(owner) } }

  /// Returns a message for a function without a place that names the functions holding places.
  func placesText(for function: String) -> String {
    let holders = state.withLock { Self.holders($0) }
    return "No worker place is left for \(function): of \(configuration.workersMax), \(holders)."
  }

  /// Returns the version that was replaced first, if its places are needed and its grace is over.
  private func nextToEnd(_ now: Duration) -> FunctionVersion? {
    let grace = configuration.replacedGrace
    let (version, wake) = state.withLock { state -> (FunctionVersion?, Duration?) in
      guard state.gate.firstWorkersUnassigned > 0 else { return (nil, nil) }
      let oldest = state.replaced.filter { state.gate.stays($0.key) }
        .min { ($0.value.since, $0.key) < ($1.value.since, $1.key) }
      guard let oldest else { return (nil, nil) }
      let end = oldest.value.since + grace
      guard end <= now else { return (nil, end) }
      state.gate.ends(oldest.key)
      return (oldest.value.version, nil)
    }
    if let wake { alarm.set(wake) }
    if let version {
      log.append(
        function: version.function.name,
        level: "warning",
        message: "What its replaced version still ran was ended, because its places are needed."
      )
    }
    return version
  }

  private func logShortage(_ now: Duration) {
    let found = state.withLock { state -> (functions: [String], holders: String)? in
      guard state.gate.placesMissing + state.gate.sharesMissing > 0,
        state.shortageLogged.map({ now - $0 >= Self.shortageLogPeriod }) ?? true
      else { return nil }
      let lacking = state.queued.values.map(\.version.owner).filter { state.gate.lacksPlace($0) }
      guard !lacking.isEmpty else { return nil }
      state.shortageLogged = now
      return (Set(lacking.map(\.function)).sorted(), Self.holders(state))
    }
    guard let found else { return }
    let more = found.functions.count - Self.namesMax
    let names = found.functions.prefix(Self.namesMax).joined(separator: " ")
    logger.warning(
      "Functions wait for workers: too few places are left; lower the holders' maxInstances or timeout",
      metadata: [
        "functions": "\(names)\(more > 0 ? " and \(more) more" : "")",
        "places": "\(configuration.workersMax)", "holders": "\(found.holders)",
      ]
    )
    for name in found.functions.prefix(Self.namesMax) {
      log.append(function: name, level: "warning", message: placesText(for: name))
    }
  }

  /// Returns the holders of places with the number that each holds, largest number first.
  private static func holders(_ state: State) -> String {
    var counts: [String: Int] = [:]
    for holder in state.gate.holders {
      let suffix = holder.role == .replaced ? " (replaced)" : ""
      counts[holder.owner.function + suffix, default: 0] += holder.live
    }
    let sorted = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    var parts = sorted.prefix(namesMax).map { "\($0.key) holds \($0.value)" }
    let rest = sorted.dropFirst(namesMax)
    if !rest.isEmpty {
      parts.append("\(rest.count) others hold \(rest.reduce(0) { $0 + $1.value })")
    }
    return parts.joined(separator: ", ")
  }
}
