import Foundation

extension BenchmarkRun {
  /// Measures loads, searches and restarts with many vectors, and a flat scan of them.
  func measureVectors() async throws {
    let load = VectorLoad(set: VectorSet())
    let exact = try await measureNumPy(load.set) {
      .vectorQueryMilliseconds(isFiltered: $0, overHTTP: false)
    }
    let arguments = ["--no-functions", "--data", hearth.folder + "/vectors"]
    try await hearth.run(arguments) { server in
      let time = try await load.load(server.vectors)
      figures.record(
        .vectorsPerSecond,
        Double(VectorSet.count) / (time / .seconds(1)),
        note: "\(VectorSet.count) of \(load.set.dimension), \(Figures.text(time / .seconds(1))) s"
      )
      let all = try await load.query(server.vectors, isFiltered: false)
      let filtered = try await load.query(server.vectors, isFiltered: true)
      record(all, filtered, overHTTP: true)
      if let exact {
        figures.record(.vectorRecall(isFiltered: false), all.recall(exact.allRows))
        figures.record(.vectorRecall(isFiltered: true), filtered.recall(exact.filteredRows))
      }
      recordMemory(.vectorsMegabytes, of: .hearth, ProcessMemory.megabytes(server.processID))
    }
    let clock = ContinuousClock()
    let began = clock.now
    try await hearth.run(arguments) { server in
      try await FirestoreLoad(address: server.firestore, project: server.project)
        .createOne("first/one")
      figures.record(.vectorsStartMilliseconds, (clock.now - began) / .milliseconds(1))
      try await load.waitUntilReady(server.vectors)
      figures.record(
        .vectorsReadyMilliseconds,
        (clock.now - began) / .milliseconds(1),
        note: ProcessMemory.megabytes(server.processID).map { "then \(Figures.text($0)) MB" } ?? ""
      )
    }
    let engine = try await load.queryEngine()
    record(engine.all, engine.filtered, overHTTP: false)
  }

  private func record(
    _ all: VectorLoad.Answers,
    _ filtered: VectorLoad.Answers,
    overHTTP: Bool
  ) {
    for (answers, isFiltered) in [(all, false), (filtered, true)] {
      let times = Measurement(nanoseconds: answers.nanoseconds, duration: .seconds(1))
      figures.record(
        .vectorQueryMilliseconds(isFiltered: isFiltered, overHTTP: overHTTP),
        times.milliseconds(0.5),
        note: "p99 \(Figures.text(times.milliseconds(0.99))) ms"
      )
    }
  }

  /// Measures Firestore's nearest-neighbor search.
  ///
  /// The search compares all documents that pass the filter.
  func measureNearest() async throws {
    let set = VectorSet(dimension: 768)
    _ = try await measureNumPy(set) { .nearestMilliseconds(isFiltered: $0) }
    let arguments = ["--no-functions", "--data", hearth.folder + "/nearest"]
    try await hearth.run(arguments) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      try await firestore.createVectors(of: set)
      for isFiltered in [false, true] {
        let times = try await firestore.findNearest(in: set, isFiltered: isFiltered)
        figures.record(
          .nearestMilliseconds(isFiltered: isFiltered),
          times.milliseconds(0.5),
          note: "p99 \(Figures.text(times.milliseconds(0.99))) ms, \(times.count) queries"
        )
      }
      recordMemory(.nearestMegabytes, of: .hearth, ProcessMemory.megabytes(server.processID))
    }
  }

  private func measureNumPy(
    _ set: VectorSet,
    _ metric: (_ isFiltered: Bool) -> Metric
  ) async throws -> NumPyScan.Answers? {
    guard let numPy else {
      print("NumPy is not installed: skipped, and with it the recall.")
      return nil
    }
    var found: NumPyScan.Answers?
    try await part("scan", of: .numPy) { found = try await numPy.run(set, in: hearth.folder) }
    guard let answers = found else { return nil }
    for (times, isFiltered) in [(answers.all, false), (answers.filtered, true)] {
      figures.record(
        metric(isFiltered),
        of: .numPy,
        times.sorted()[times.count / 2]
      )
    }
    return answers
  }
}
