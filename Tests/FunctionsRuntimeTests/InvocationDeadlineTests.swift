import HTTPMessages
import HTTPTypes
import Identity
import InvocationContext
import NIOCore
import Synchronization
import Testing
import TestSupport

@testable import FunctionsRuntime

@Suite("Deadline of an invocation")
struct InvocationDeadlineTests {
  @Test(
    "A handler's work knows when it must have ended: by its own time or by the platform's",
    arguments: [
      (nil, nil, 60), (10, nil, 10), (nil, 20, 20), (10, 20, 10), (30, 20, 20),
    ] as [(Int?, Int?, Int)]
  )
  func known(timeout: Int?, requestTimeMax: Int?, seconds: Int) async throws {
    let seen = Mutex<ContinuousClock.Instant?>(nil)
    let app = FunctionsApp {
      OnRequest("f", options: .init(timeout: timeout.map { .seconds($0) })) { _ in
        seen.withLock { $0 = InvocationDeadline.current }
        return .text("")
      }
    }
    let host = try FunctionHost(
      app: app,
      target: "f",
      requestTimeMax: requestTimeMax.map { .seconds($0) },
      credentials: CredentialReader(mode: .emulator),
      makeLogger: { _ in .silent }
    )
    let start = ContinuousClock.now
    let head = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/")
    _ = await host.respond(to: head, body: ByteBuffer())
    let end = ContinuousClock.now

    let deadline = try #require(seen.withLock { $0 })
    #expect((start + .seconds(seconds)...end + .seconds(seconds)).contains(deadline))
    #expect(InvocationDeadline.current == nil)
  }

  @Test("A body that a handler writes later has the deadline of its invocation")
  func streamed() async throws {
    let seen = Mutex<[ContinuousClock.Instant?]>([])
    let app = FunctionsApp {
      OnRequest("f") { _ in
        seen.withLock { $0.append(InvocationDeadline.current) }
        return .stream { _ in seen.withLock { $0.append(InvocationDeadline.current) } }
      }
    }
    let host = try FunctionHost(
      app: app,
      target: "f",
      credentials: CredentialReader(mode: .emulator),
      makeLogger: { _ in .silent }
    )
    let head = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/")
    _ = try await host.respond(to: head, body: ByteBuffer()).body.collect(upTo: 1)

    let deadlines = seen.withLock { $0 }
    #expect(deadlines.count == 2 && deadlines[0] != nil && deadlines[0] == deadlines[1])
  }
}
