import TestSupport
import Testing

@Suite("The dispatcher step by step", .timeLimit(.minutes(15)))
struct DispatchModelTests {
  private static let steps = 200_000

  @Test("When nothing fails, each event is delivered once and in the order of its document")
  func calm() async throws {
    try await play(DispatchModel.Hardship())
  }

  @Test("Handlers that fail and workers that crash lose no event and double none that succeeded")
  func failures() async throws {
    try await play(DispatchModel.Hardship(failures: true))
  }

  @Test("A server that crashes again and again delivers each event")
  func crashes() async throws {
    try await play(DispatchModel.Hardship(crashes: true, failures: true))
  }

  @Test("Functions that come and go with deployments lose no event and keep their order")
  func deployments() async throws {
    try await play(DispatchModel.Hardship(undeploys: true))
    try await play(DispatchModel.Hardship(crashes: true, failures: true, undeploys: true))
  }

  @Test(
    "Documents with more events than fit into memory lose none, keep their order, whatever crashes",
    arguments: [1, 3, 12]
  )
  func hotDocuments(count: Int) async throws {
    try await play(DispatchModel.Hardship(hotDocuments: count), of: 5)
    try await play(DispatchModel.Hardship(failures: true, hotDocuments: count), of: 5)
    try await play(
      DispatchModel.Hardship(crashes: true, failures: true, undeploys: true, hotDocuments: count),
      of: 10
    )
  }

  private func play(_ hardship: DispatchModel.Hardship, of rounds: Int = 20) async throws {
    var generator = SeededGenerator.forTest()
    for _ in 0..<rounds {
      let seed = generator.next()
      var model = DispatchModel(seed: seed, hardship: hardship)
      do {
        try await model.play(steps: Self.steps / 20)
      } catch let finding as DispatchModel.ModelError {
        Issue.record("seed \(seed): \(finding)")
        return
      }
    }
  }
}
