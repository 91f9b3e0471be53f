/// Measurements of Psst's contacts, whose durations Psst's documents limit.
extension BenchmarkRun {
  /// Measures the services of a trainer with many contacts among very many users.
  func measureContacts() async throws {
    let folder = hearth.folder + "/contacts"
    _ = try copyRules(to: folder)
    let arguments = ["--no-functions", "--data", folder + "/data"]
    try await hearth.run(arguments, in: folder) { server in
      try await People.store(
        in: FirestoreLoad(address: server.firestore, project: server.project)
      )
      let load = try ContactsLoad(server)
      figures.record(
        .firstLookUpMilliseconds,
        try await load.firstLookUp(),
        note: "reads all \(People.users) users"
      )
      for request in ContactRequest.allCases {
        let times = try await load.measure(request)
        record(times.calls, for: request, of: .hearth)
        if let direct = times.direct { record(direct, for: request, of: .rawREST) }
      }
      recordMemory(.contactsMegabytes, of: .hearth, ProcessMemory.megabytes(server.processID))
    }
  }

  private func record(
    _ measurement: Measurement,
    for request: ContactRequest,
    of subject: Subject
  ) {
    for percentile in [50, 99] {
      figures.record(
        .contactsMilliseconds(request, percentile: percentile),
        of: subject,
        measurement.milliseconds(Double(percentile) / 100),
        note: "longest \(Figures.text(measurement.milliseconds(1))) ms"
      )
    }
  }
}
