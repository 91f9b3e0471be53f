import HTTPSupport
import HTTPTypes
import NIOCore
import Testing
import TestSupport

@testable import EmulatorSuite

@Suite("Wrong port")
struct WrongPortTests {
  private let logs = LogCapture()

  private func wrongPort(of service: SuiteService) -> WrongPort {
    WrongPort(
      of: service,
      project: "demo-test",
      addresses: { [.firestore: ServiceAddress(host: "127.0.0.1", port: 8080)] },
      logger: logs.logger()
    )
  }

  private func request(_ path: String) -> Request {
    Request(
      head: HTTPRequest(method: .get, scheme: "http", authority: "127.0.0.1", path: path)
    )
  }

  @Test(
    "A path that belongs to one service without doubt is known by it",
    arguments: [
      ("/v1/projects/demo-test/databases/(default)/documents/a/b", .firestore),
      ("/v1/projects/p/databases/d:runQuery?x=1", .firestore),
      ("/emulator/v1/projects/demo-test/databases/(default)/documents", .firestore),
      ("/demo-test/us-central1/greet", .functions), ("/demo-test/us-central1/greet/x", .functions),
      ("/hearth/v1/suite", .hub), ("/emulators", .hub), ("/ix/chat-messages/query", .vectors),
      ("/indexes", .vectors),
      ("/v2/projects/demo-psst/locations/us-central1/queues/mail/tasks", .tasks),
      ("/projects/demo-psst/locations/us-central1/queues/mail/tasks", .tasks),
      ("/queueStats", .tasks), ("/.ws", .database), ("/.lp", .database), ("/.json", .database),
      ("/.settings/rules.json", .database), ("/.inspect/databases.json", .database),
      ("/identitytoolkit.googleapis.com/v1/accounts:signUp", .auth),
      ("/securetoken.googleapis.com/v1/token", .auth), ("/emulator/action", .auth),
      ("/emulator/v1/projects/demo-test/accounts", .auth),
      ("/emulator/v1/projects/demo-test/oobCodes", .auth),
      ("/", nil), ("/other-project/us-central1/greet", nil), ("/demo-test/index.html", nil),
      ("/.well-known/a.json", nil), ("/users.json", nil), ("/v1/projects/p", nil), ("/query", nil),
      ("/v1/embeddings", nil),
    ] as [(String, SuiteService?)]
  )
  func paths(path: String, service: SuiteService?) {
    let path = String(path.prefix { $0 != "?" })

    #expect(WrongPort.service(answering: path, project: "demo-test") == service)
  }

  @Test("A client at the wrong port receives the right address, which is logged once")
  func refusal() async throws {
    let wrongPort = wrongPort(of: .functions)
    let path = "/v1/projects/demo-test/databases/(default)/documents/a/b"

    #expect(wrongPort.refusal(of: request(path))?.status == .notFound)
    #expect(wrongPort.refusal(of: request(path))?.status == .notFound)
    #expect(
      wrongPort.hint(forMethod: "/google.firestore.v1.Firestore/Commit")
        == "This is the port of Functions; Firestore answers at 127.0.0.1:8080."
    )
    #expect(logs.entries.count == 1)
    #expect(logs.entries.first?.message.contains("Firestore answers at 127.0.0.1:8080") == true)
  }

  @Test("What a service answers itself, and what none does, passes")
  func passes() {
    let path = "/v1/projects/demo-test/databases/(default)/documents/a/b"

    #expect(wrongPort(of: .firestore).refusal(of: request(path)) == nil)
    #expect(wrongPort(of: .firestore).hint(forMethod: "/google.firestore.v1.Firestore/Nope") == nil)
    #expect(wrongPort(of: .functions).refusal(of: request("/favicon.ico")) == nil)
    #expect(wrongPort(of: .functions).hint(forMethod: "/grpc.health.v1.Health/Check") == nil)
    #expect(wrongPort(of: .database).refusal(of: request("/v1/projects/p/databases.json")) == nil)
    #expect(wrongPort(of: .database).refusal(of: request("/indexes.json?ns=a")) == nil)
    #expect(wrongPort(of: .database).refusal(of: request(path)) != nil)
    #expect(logs.entries.count == 1)
  }
}
