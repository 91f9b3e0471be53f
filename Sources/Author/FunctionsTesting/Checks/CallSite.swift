/// The line of a test that made a check.
struct CallSite: Sendable {
  let fileID: StaticString
  let filePath: StaticString
  let line: UInt
  let column: UInt

  init(_ fileID: StaticString, _ filePath: StaticString, _ line: UInt, _ column: UInt) {
    self.fileID = fileID
    self.filePath = filePath
    self.line = line
    self.column = column
  }

  /// Runs a check, and records its failure at this line instead of throwing it.
  ///
  /// Throws the failure of the suite itself, and any failure if no test of a framework runs.
  func record(
    isolation: isolated (any Actor)? = #isolation,
    _ check: () async throws -> Void
  ) async throws {
    do {
      try await check()
    } catch let error as FunctionsTestingError where error.kind != .suiteFailed {
      try record(error)
    }
  }

  /// Records a failed check at this line; throws it if no test of a framework runs.
  func record(_ error: FunctionsTestingError) throws {
    guard !TestFrameworks.record(error.message, at: self) else { return }
    throw error
  }
}
