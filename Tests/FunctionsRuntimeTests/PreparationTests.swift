import FunctionsRuntime
import HTTPMessages
import HTTPTypes
import Identity
import NIOCore
import Testing
import TestSupport

@Suite("Preparation of functions")
struct PreparationTests {
  private struct Failure: Error {}

  private func callable(_ name: String) -> OnCall<Int, Int> {
    .init(name) { $0.data }
  }

  private func host(_ app: FunctionsApp, target: String? = nil) throws -> FunctionHost {
    try FunctionHost(
      app: app,
      target: target,
      credentials: CredentialReader(mode: .emulator),
      makeLogger: { _ in .silent }
    )
  }

  /// An app with two functions that have preparations, two that share one, and one without.
  private func app(_ seen: Seen<String>) -> FunctionsApp {
    FunctionsApp {
      callable("z").prepared { seen.add("z") }
      [callable("b").definition, callable("a").definition].prepared { seen.add("shared") }
      callable("plain")
      callable("y").prepared { seen.add("y") }
    }
  }

  @Test("A host of all functions prepares them in their order, and what they share once")
  func all() async throws {
    let seen = Seen<String>()
    let host = try host(app(seen))
    #expect(seen.all.isEmpty)
    try await host.prepare()

    #expect(seen.all == ["z", "shared", "y"])
  }

  @Test(
    "A host of one function prepares that one only",
    arguments: [("z", ["z"]), ("a", ["shared"]), ("b", ["shared"]), ("plain", [])]
  )
  func target(name: String, expected: [String]) async throws {
    let seen = Seen<String>()
    try await host(app(seen), target: name).prepare()

    #expect(seen.all == expected)
  }

  @Test("What is prepared twice is prepared from the inside out")
  func nested() async throws {
    let seen = Seen<String>()
    let app = FunctionsApp {
      [callable("a").prepared { seen.add("inner") }, callable("b").definition]
        .prepared { seen.add("outer") }
    }
    try await host(app).prepare()

    #expect(seen.all == ["inner", "outer"])
  }

  @Test("The first error comes out, and nothing is prepared after it")
  func failure() async throws {
    let seen = Seen<String>()
    let app = FunctionsApp {
      callable("a").prepared { seen.add("a") }
      callable("b").prepared { throw Failure() }
      callable("c").prepared { seen.add("c") }
    }
    let host = try host(app)
    await #expect(throws: Failure.self) { try await host.prepare() }

    #expect(seen.all == ["a"])
  }

  @Test("A prepared function is the same in all else, and a manifest prepares nothing")
  func definition() async throws {
    let seen = Seen<String>()
    let plain = try FunctionsApp { callable("a") }.manifest()
    let app = FunctionsApp { callable("a").prepared { seen.add("a") } }

    #expect(try app.manifest() == plain)
    let head = HTTPRequest(
      method: .post,
      scheme: nil,
      authority: nil,
      path: "/a",
      headerFields: [.contentType: "application/json"]
    )
    let reply = try await host(app).respond(to: head, body: ByteBuffer(string: #"{"data":7}"#))
    #expect(String(buffer: try await reply.body.collect(upTo: 100)) == #"{"result":7}"#)
    #expect(seen.all.isEmpty)
  }
}
