import AsyncAlgorithms
import FirestoreClient
import JSONText
import Synchronization
import TestSupport
import Testing

@testable import DatabaseClient

@Suite("Lasting connections", .timeLimit(.minutes(1)))
struct DatabaseConnectionTests {
  /// A server of WebSockets in the test's own process.
  private final class Server: MessageSockets {
    /// The texts of each connection in the order of their arrival.
    let received = Mutex<[[String]]>([])
    private let answer: @Sendable (_ connection: Int, _ text: String) -> [String]
    private let closing = Mutex<[AsyncChannel<String>]>([])

    /// Creates a server that responds to each text with those that `answer` returns.
    init(answer: @escaping @Sendable (_ connection: Int, _ text: String) -> [String]) {
      self.answer = answer
    }

    /// Answers `ok` to each request, and to each ping.
    convenience init() { self.init { _, text in Self.ok(text) } }

    static func ok(_ text: String, status: String = "ok", data: String = #""""#) -> [String] {
      guard let message = JSONObjectText(parsing: text), message.text("t") == "d",
        let number = message.object("d")?.number("r")
      else { return [#"{"t":"c","d":{"t":"o","d":{}}}"#] }
      return [#"{"t":"d","d":{"r":\#(number),"b":{"s":"\#(status)","d":\#(data)}}}"#]
    }

    func closeLast() { closing.withLock { $0.last }?.finish() }

    var count: Int { received.withLock { $0.count } }

    func withSocket(
      _ url: String,
      _ body: @escaping @Sendable (MessageSocket) async throws -> Void
    ) async throws {
      let texts = AsyncChannel<String>()
      closing.withLock { $0.append(texts) }
      let connection = received.withLock { received in
        received.append([url])
        return received.count - 1
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        let replies = AsyncChannel<[String]>()
        group.addTask {
          await texts.send(#"{"t":"c","d":{"t":"h","d":{"ts":1,"v":"5","h":"x","s":"s"}}}"#)
          for await reply in replies {
            for text in reply { await texts.send(text) }
          }
        }
        group.addTask {
          try await body(
            MessageSocket(messages: texts.map { (text) throws -> String in text }) { frames in
              self.received.withLock { $0[connection] += frames }
              for frame in frames { await replies.send(self.answer(connection, frame)) }
            }
          )
        }
        // The replies end only when they are cancelled.
        defer { group.cancelAll() }
        try await group.next()
      }
    }

    /// The actions and bodies of a connection's requests.
    func requests(_ connection: Int) -> [String] {
      received.withLock { $0[connection] }.compactMap { text in
        guard let data = JSONObjectText(parsing: text)?.object("d"), let action = data.text("a"),
          let body = data["b"]
        else { return nil }
        return "\(action) \(String(decoding: body, as: UTF8.self))"
      }
    }
  }

  /// Runs `body` while connected, and `check` once `isDone` is true; then ends the connection.
  private func run(
    _ server: Server,
    _ credential: DatabaseCredential = .admin,
    source: (any IDTokenSource)? = nil,
    doing body: @escaping @Sendable (DatabaseConnection, DatabaseReference) async throws -> Void,
    until isDone: @escaping @Sendable () -> Bool
  ) async throws {
    var database = Database.scripted(ScriptedHTTP(), credential, sockets: server)
    if let source { database = database.acting(as: source) }
    let (connected, reference) = (database, database.reference("presence/t"))
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await connected.whileConnected { try await body($0, reference) } }
      group.addTask { await eventually("the connection did its work") { isDone() } }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  @Test("The client signs in, and its requests arrive in the order of the calls")
  func requests() async throws {
    let server = Server()
    try await run(server) { connection, reference in
      try await connection.onDisconnect(set: reference, to: ["at": ServerValue.timestamp])
      try await connection.onDisconnect(update: reference, with: ["a": 1, "b": nil])
      try await connection.onDisconnect(remove: reference.child("x"))
      try await connection.cancelOnDisconnect(reference)
      try await connection.set(reference, to: true)
    } until: {
      server.count == 1 && server.requests(0).count == 6
    }

    #expect(server.received.withLock { $0[0].first } == "ws://127.0.0.1:9000/.ws?v=5&ns=main")
    #expect(
      server.requests(0) == [
        #"gauth {"cred":"owner"}"#, #"o {"d":{"at":{".sv":"timestamp"}},"p":"/presence/t"}"#,
        #"om {"d":{"a":1,"b":null},"p":"/presence/t"}"#, #"o {"d":null,"p":"/presence/t/x"}"#,
        #"oc {"d":null,"p":"/presence/t"}"#, #"p {"d":true,"p":"/presence/t"}"#,
      ]
    )
  }

  @Test("After a lost connection the work is done again on a new one")
  func reconnects() async throws {
    let server = Server()
    try await run(server) { connection, reference in
      try await connection.set(reference, to: true)
      if server.count < 3 { server.closeLast() }
    } until: {
      server.count == 3 && server.requests(2).count == 2
    }

    #expect(server.requests(0) == server.requests(2))
  }

  @Test("A request that the rules refuse throws, and the error ends the connection")
  func refused() async throws {
    let server = Server { _, text in
      Server.ok(
        text,
        status: text.contains(#""a":"p""#) ? "permission_denied" : "ok",
        data: #""no""#
      )
    }
    let error = await #expect(throws: DatabaseError.self) {
      try await run(server, doing: { try await $0.set($1, to: 1) }, until: { false })
    }

    #expect(error?.code == .permissionDenied && error?.message == "no")
    #expect(server.count == 1)
  }

  @Test("A refused client does not come again; one that is asked to, does")
  func control() async throws {
    let killed = Server { _, text in
      text.contains("gauth") ? [#"{"t":"c","d":{"t":"s","d":"unknown namespace"}}"#] : []
    }
    let error = await #expect(throws: DatabaseError.self) {
      try await run(killed, doing: { _, _ in }, until: { false })
    }
    #expect(error?.message == "unknown namespace" && killed.count == 1)

    let reset = Server { connection, text in
      connection == 0 && text.contains("gauth")
        ? [#"{"t":"c","d":{"t":"r","d":"other"}}"#] : Server.ok(text)
    }
    try await run(reset) {
      try await $0.set($1, to: 1)
    } until: {
      reset.count == 2 && reset.requests(1).count == 2
    }
  }

  @Test("A refused token is replaced")
  func token() async throws {
    struct Source: IDTokenSource {
      func idToken(replacing rejected: String?) async throws -> String {
        rejected == nil ? "old" : "new"
      }
    }
    let server = Server { _, text in
      Server.ok(text, status: text.contains("old") ? "expired_token" : "ok")
    }
    try await run(server, source: Source()) { _, _ in
    } until: {
      server.count >= 2 && server.requests(1).count == 1
    }

    #expect(server.requests(0) == [#"auth {"cred":"old"}"#])
    #expect(server.requests(1) == [#"auth {"cred":"new"}"#])
  }

  @Test("A long message goes out and comes in as pieces")
  func pieces() throws {
    let text = String(repeating: "a😀", count: 12_000)
    let frames = ConnectionMessages.frames(of: text)
    var assembly = ConnectionFrames(bytesMax: 1 << 20)

    #expect(frames.count == 4 && frames[0] == "3")
    #expect(frames.dropFirst().allSatisfy { $0.utf16.count <= 16_384 })
    #expect(try frames.dropLast().allSatisfy { try assembly.take($0) == nil })
    #expect(try assembly.take(frames[3]) == text)
    #expect(try assembly.take("0") == nil)
    #expect(try assembly.take("{}") == "{}")
  }

  @Test("Pieces beyond the bound are refused")
  func tooLong() throws {
    var assembly = ConnectionFrames(bytesMax: 10)
    _ = try assembly.take("3")
    _ = try assembly.take("123456")

    #expect(throws: DatabaseError.self) { try assembly.take("123456") }
  }

  @Test(
    "A text that is not of the protocol is a temporary failure",
    arguments: ["", "[]", "{}", #"{"t":"d"}"#, #"{"t":"c","d":1}"#]
  )
  func malformed(text: String) {
    let error = #expect(throws: DatabaseError.self) { try ConnectionMessages.received(text) }
    #expect(error?.code == .internal)
  }
}
