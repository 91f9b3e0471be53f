import Foundation
import Identity

/// Measurements of what Psst's security rules add to requests.
extension BenchmarkRun {
  private static let rulesClients = 16
  private static let rulesListeners = 32
  private static let rulesChanges = 300

  /// Measures the same requests as a user whom the rules admit and as the administrator.
  func measureRules() async throws {
    let folder = hearth.folder + "/rules"
    let (rules, copy) = try copyRules(to: folder)
    let decisions = try RuleDecisions(rules: rules)
    for request in RuledRequest.allCases {
      figures.record(
        .ruleDecisionsPerSecond(request),
        try decisions.perSecond(request, for: duration),
        note: "one thread"
      )
    }
    try await hearth.run(["--ephemeral", "--no-functions"], in: folder) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      try await measureRules(firestore, of: .hearth, server.processID, warmUp: Self.warmUp)
    }
    guard let official else { return }
    try await part("rules", of: .official) {
      try await official.run(in: folder, rules: copy) { process, address in
        let firestore = FirestoreLoad(address: address, project: "demo-psst")
        try await measureRules(
          firestore,
          of: .official,
          process.processID,
          warmUp: Self.officialWarmUp
        )
      }
    }
  }

  /// Copies Psst's rules to a new folder, where a server that is started in it loads them.
  func copyRules(to folder: String) throws -> (rules: String, path: String) {
    let file = URL(filePath: "firestore.rules").standardizedFileURL
    guard let rules = try? String(contentsOf: file, encoding: .utf8) else {
      throw BenchmarkError("There is no \(file.path); run the benchmarks in Hearth's own folder.")
    }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let path = folder + "/firestore.rules"
    try rules.write(toFile: path, atomically: true, encoding: .utf8)
    try Hearth.makeProject(of: folder)
    return (rules, path)
  }

  private func measureRules(
    _ firestore: FirestoreLoad,
    of subject: Subject,
    _ processID: Int32,
    warmUp: Duration
  ) async throws {
    try await RulesLoad(firestore: firestore).prepare()
    var user = firestore
    user.token = try UnsignedTokenIssuer.issue(uid: RulesLoad.trainer, project: firestore.project)
    for request in RuledRequest.allCases {
      // One run in advance lets the server learn from it, for example which indexes to build.
      _ = try await RulesLoad(firestore: user).run(request, load(1), round: "first")
      // No rules apply to the administrator's requests.
      for isAdministrator in subject == .hearth ? [true, false] : [false] {
        let requests = RulesLoad(firestore: isAdministrator ? firestore : user)
        let clients = load(Self.rulesClients, warmUp: warmUp)
        let (outcome, use) = try await ProcessorUse.counted(processID) {
          try await requests.run(request, clients, round: isAdministrator ? "owner" : "user")
        }
        let whose = isAdministrator ? .withoutRules : subject
        figures.record(.ruledPerSecond(request), of: whose, outcome)
        guard subject == .hearth else { continue }
        // The processor time includes the requests of the warm-up.
        let share = (clients.warmUp + clients.duration) / clients.duration
        let count = Int((Double(outcome.count) * share).rounded())
        figures.record(use, for: .ruled(request), count: count, of: whose)
      }
    }
    guard subject == .hearth else { return }
    try await measureRuledSnapshots(firestore, user.token, processID)
  }

  /// Measures snapshots of listeners that security rules may refuse.
  ///
  /// As in Psst, each change of a message also changes its chat. The rules read the chat.
  private func measureRuledSnapshots(
    _ firestore: FirestoreLoad,
    _ token: String,
    _ processID: Int32
  ) async throws {
    var load = ListenLoad(firestore: firestore, listeners: Self.rulesListeners)
    load.collection = "\(RulesLoad.chat)/messages"
    load.alsoChanged = [RulesLoad.chat]
    for isAdministrator in [true, false] {
      load.token = isAdministrator ? nil : token
      _ = try await load.measure(changes: Self.rulesChanges / 6)
      let (outcome, use) = try await ProcessorUse.counted(processID) {
        try await load.measure(changes: Self.rulesChanges)
      }
      let whose = isAdministrator ? Subject.withoutRules : .hearth
      for percentile in [50, 99] {
        figures.record(
          .ruledSnapshotMilliseconds(percentile: percentile),
          of: whose,
          outcome.delays.milliseconds(Double(percentile) / 100)
        )
      }
      let count = Self.rulesChanges * Self.rulesListeners
      figures.record(use, for: .ruledSnapshot, count: count, of: whose)
    }
  }
}
