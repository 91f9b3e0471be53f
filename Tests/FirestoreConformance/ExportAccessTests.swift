import DocumentModel
import DocumentStore
import EventLog
import FirestoreEmulator
import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import NIOEmbedded
import QueryEngine
import StorageEngine
import TestSupport
import Testing

@Suite("Who may export at Firestore's port")
struct ExportAccessTests {
  private let service: FirestoreService

  init() {
    let storage = MemoryStorage()
    let store = DocumentDatabase(
      storage: storage,
      queryRunner: QueryRunner(logger: .silent),
      tailer: EventTailer(storage: storage, logger: .silent),
      now: { Timestamp(microseconds: 1_700_000_000_000_000) },
      clock: ContinuousClock(),
      logger: .silent
    )
    service = FirestoreService(
      store: store,
      project: "demo",
      exporter: { "\($0.directory)/\($0.name)" },
      logger: .silent
    )
  }

  /// Asks for an export from an address; nil stands for a request that the console passes on.
  private func status(from address: String?, _ headers: HTTPFields) async throws -> Int {
    var head = HTTPRequest(
      method: .post,
      scheme: "http",
      authority: "localhost",
      path: "/emulator/v1/projects/demo:export"
    )
    head.headerFields = headers
    let body = """
      {"database": "projects/demo/databases/(default)", "export_directory": "/exports"}
      """
    let context = try address.map { address in
      let channel = NIOAsyncTestingChannel()
      channel.remoteAddress = try SocketAddress(ipAddress: address, port: 50_000)
      return HTTPContext(channel: channel)
    }
    let request = Request(head: head, body: .whole(ByteBuffer(string: body)))
    return await service.respond(to: request, context).status.code
  }

  private static let owner: HTTPFields = [.authorization: "Bearer owner"]

  @Test("An administrator's program on this machine may export")
  func thisMachine() async throws {
    for address in ["127.0.0.1", "::1"] {
      #expect(try await status(from: address, Self.owner) == 200)
    }
  }

  @Test("Other machines, web pages, the console and users may not, even as the administrator")
  func others() async throws {
    var page = Self.owner
    page[.origin] = "http://localhost:3000"

    #expect(try await status(from: "192.0.2.1", Self.owner) == 403)
    #expect(try await status(from: "127.0.0.1", page) == 403)
    #expect(try await status(from: nil, Self.owner) == 403)
    #expect(try await status(from: "127.0.0.1", [:]) == 403)
  }
}
