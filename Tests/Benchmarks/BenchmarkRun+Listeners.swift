/// Measurements of changes that are sent to many listeners.
extension BenchmarkRun {
  private static let listeners = [1, 32, 128, 1000]
  private static let webPages = [1, 32, 128]
  private static let idleListeners = 10_000
  /// Changes made before those that count, so that caches are warm and code is compiled.
  private static let warmUpChanges = 50
  /// The approximate number of snapshots observed for each number of listeners.
  private static let seenChanges = 20_000
  private static let collectionSize = 10_000
  private static let largeCollectionSize = 100_000
  private static let snapshots = 5

  /// Measures Hearth with busy and with idle listeners.
  func measureListeners() async throws {
    try await hearth.run(["--ephemeral", "--no-functions"]) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      try await measureListeners(firestore, of: .hearth)
      let before = ProcessMemory.megabytes(server.processID)
      let load = ListenLoad(firestore: firestore, listeners: Self.idleListeners)
      let after = try await load.hold { ProcessMemory.megabytes(server.processID) }
      if let before, let after {
        figures.record(
          .idleListenersMegabytes,
          after,
          note: "\(Figures.text(before)) MB before"
        )
      }
      try await measureResumption(firestore)
    }
  }

  /// Measures how long a reconnecting listener takes to receive one change.
  ///
  /// It resumes from a token, as a phone with a cache does.
  private func measureResumption(_ firestore: FirestoreLoad) async throws {
    let size = Self.largeCollectionSize
    try await firestore.createAll((0..<size).map { "large/d\($0)" })
    var last = try await FirstSnapshot.take(of: "large", firestore)
    var times: [Double] = []
    for _ in 0..<Self.snapshots {
      try await firestore.changeOne("large/d\(size / 2)")
      last = try await FirstSnapshot.take(
        of: "large",
        firestore,
        resuming: last.token,
        documents: size
      )
      times.append(last.milliseconds)
    }
    figures.record(
      .resumptionMilliseconds,
      times.sorted()[times.count / 2],
      note: "\(last.documentsSent) document sent"
    )
  }

  private func measureFirstSnapshot(_ firestore: FirestoreLoad, of subject: Subject) async throws {
    try await firestore.createAll((0..<Self.collectionSize).map { "whole/d\($0)" })
    var times: [Double] = []
    for _ in 0..<Self.snapshots {
      times.append(try await FirstSnapshot.take(of: "whole", firestore).milliseconds)
    }
    figures.record(.firstSnapshotMilliseconds, of: subject, times.sorted()[times.count / 2])
  }

  /// Measures the time from a change to its snapshot, for various numbers of listeners.
  func measureListeners(_ firestore: FirestoreLoad, of subject: Subject) async throws {
    try await measureFirstSnapshot(firestore, of: subject)
    let load = ListenLoad(firestore: firestore, listeners: 1)
    try await load.prepare()
    for listeners in Self.listeners {
      for areDifferent in [false, true] {
        var load = load
        load.listeners = listeners
        load.areDifferent = areDifferent
        let changes = min(500, max(20, Self.seenChanges / listeners))
        _ = try await load.measure(changes: min(changes, Self.warmUpChanges))
        let outcome = try await load.measure(changes: changes)
        for percentile in [50, 99] {
          figures.record(
            .snapshotMilliseconds(
              listeners: listeners,
              areDifferent: areDifferent,
              percentile: percentile
            ),
            of: subject,
            outcome.delays.milliseconds(Double(percentile) / 100)
          )
        }
        if listeners == 32, !areDifferent {
          figures.record(.documentsSentPerChange, of: subject, outcome.documentsSent)
        }
      }
    }
    for pages in Self.webPages {
      let load = ListenLoad(firestore: firestore, listeners: pages, areWebPages: true)
      let changes = min(500, Self.seenChanges / pages / 4)
      _ = try await load.measure(changes: min(changes, Self.warmUpChanges))
      let outcome = try await load.measure(changes: changes)
      for percentile in [50, 99] {
        figures.record(
          .webSnapshotMilliseconds(pages: pages, percentile: percentile),
          of: subject,
          outcome.delays.milliseconds(Double(percentile) / 100)
        )
      }
    }
  }
}
