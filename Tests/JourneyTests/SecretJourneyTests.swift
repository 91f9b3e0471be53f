import Foundation
import OutboundHTTP
import TestSupport
import Testing

@Suite("Journeys of a secret", .serialized, .timeLimit(.minutes(5)))
struct SecretJourneyTests {
  @Test("A secret reaches only the function that declares it, the user's shell none, logs neither")
  func reaches() async throws {
    let project = try JourneyProject()
    func config(_ arguments: String..., input: String = "") async throws -> HearthCommand {
      try await HearthCommand.run(
        ["functions", "config"] + arguments,
        in: project.folder.path,
        input: input
      )
    }
    let set = try await config("set", "--secret", "SAMPLE_SECRET", input: "hush-1\n")
    #expect(set.status == 0 && set.errors.contains("hearth deploy"), "\(set)")
    #expect(try await config("set", "SAMPLE_PLAIN=for all").status == 0)
    let shown = try await config("get")
    #expect(shown.output.contains("(set)") && !shown.output.contains("hush-1"))
    #expect(try await config("get", "SAMPLE_SECRET", "--reveal").output == "hush-1\n")
    #expect(try await config("set", "K_SERVICE=x").status == 1)

    let suite = try await SuiteProcess(project, environment: ["SAMPLE_SHELL": "hush-2"])
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    func variables(_ function: String) async throws -> [String] {
      struct Reply: Decodable { var result: [String] }
      let names = #"["SAMPLE_SECRET","SAMPLE_PLAIN","SAMPLE_SHELL"]"#
      let reply = try await client.call(function, data: names)
      return try JSONDecoder().decode(Reply.self, from: Data(reply.body)).result
    }
    #expect(try await variables("variables") == ["hush-1", "for all", "-"])
    #expect(try await variables("plainVariables") == ["-", "for all", "-"])

    #expect(try await config("unset", "--secret", "SAMPLE_SECRET").status == 0)
    #expect(try await client.deploy().contains(#""deployed""#))
    #expect(try await variables("variables") == ["-", "for all", "-"])
    #expect(await suite.stop() == 0)
    let log = try String(contentsOfFile: project.folder.path("log"), encoding: .utf8)
    let kept = FileManager.default.subpaths(atPath: project.data + "/logs") ?? []
    let lines = kept.compactMap {
      FileManager.default.contents(atPath: "\(project.data)/logs/\($0)")
    }
    #expect(!log.contains("hush-"))
    #expect(!lines.contains { String(decoding: $0, as: UTF8.self).contains("hush-") })
  }
}
