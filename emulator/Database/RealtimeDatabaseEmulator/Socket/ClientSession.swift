import DatabaseModel
import DatabaseTree
import Identity
import JSONText
import Synchronization

/// Takes the messages to a client, in order.
protocol MessageOutlet: AnyObject, Sendable {
  /// Sends a message; must not block.
  func send(_ message: ServerMessage)
  /// Called when fewer requests than the maximum are without a response again.
  func hasRoom()
}

/// The protocol of Firebase's clients, version 5, for one client over any transport.
///
/// `receive` is called for one message after the other.
final class ClientSession: Sendable {
  /// The number of requests that may wait for their responses, before no more are read.
  static let requestsMax = 256

  private let session: DatabaseSession
  private let requests: PendingRequests
  private let credentials: DatabaseCredentials
  /// The time in milliseconds.
  private let now: @Sendable () -> Int64
  /// The time at which the client's token expires, in milliseconds.
  private let expiry = Mutex<Int64?>(nil)

  init(
    _ instance: DatabaseInstance,
    credentials: DatabaseCredentials,
    now: @escaping @Sendable () -> Int64,
    outlet: any MessageOutlet
  ) {
    self.credentials = credentials
    self.now = now
    let requests = PendingRequests(outlet)
    self.requests = requests
    session = instance.open(as: DatabaseCaller(.unauthenticated)) { requests.take($0) }
  }

  /// True while as many requests as allowed have no response.
  var isFull: Bool { requests.count >= Self.requestsMax }

  /// Sends everything to another outlet from now on, after one last message to the present one.
  func move(to outlet: any MessageOutlet, last: ServerMessage) {
    requests.move(to: outlet, last: last)
  }

  /// Ends the session, which applies the writes for the disconnect.
  func close() { session.close() }

  /// Takes the token back if it has expired.
  func tick(atMilliseconds now: Int64) {
    let isExpired = expiry.withLock { expiry in
      guard let time = expiry, time <= now else { return false }
      expiry = nil
      return true
    }
    guard isExpired else { return }
    requests.send(.tokenExpired)
    session.authenticate(requests.begin(.silent), as: DatabaseCaller(.unauthenticated))
  }

  /// Refuses a message that is too long, and whose beginning tells its request.
  ///
  /// Returns false if it does not tell.
  func refuse(beginning: [UInt8]) -> Bool {
    guard let number = ClientMessage.requestNumber(in: beginning) else { return false }
    requests.send(.error(number, .tooBig))
    return true
  }

  /// Handles a message.
  func receive(_ text: [UInt8]) {
    guard let message = ClientMessage(text) else {
      return requests.send(.control("e", #""Invalid message""#))
    }
    switch message.content {
    case .control("p"): requests.send(.control("o"))
    // Other control messages are not for this side.
    case .control: break
    case .request(let number, let action, let body):
      do {
        try handle(number, action, body, message)
      } catch let error as DatabaseError {
        requests.send(.error(number, error))
      } catch let error as DatabaseDataError {
        requests.send(.error(number, DatabaseError(error)))
      } catch {
        requests.send(.failure(number, status: "failed", "\(error)"))
      }
    }
  }

  private func handle(
    _ number: Int,
    _ action: String,
    _ body: JSONTree,
    _ message: ClientMessage
  ) throws {
    switch action {
    case "q", "n", "g": try read(number, action, body)
    case "p", "m", "o", "om", "oc": try write(number, action, body)
    case "auth": try authenticate(number, body, message, isUser: true)
    case "gauth": try authenticate(number, body, message, isUser: false)
    case "unauth":
      expiry.withLock { $0 = nil }
      let request = requests.begin(.data(number, Array(#""unauthenticated""#.utf8)))
      session.authenticate(request, as: DatabaseCaller(.unauthenticated))
    // Statistics and App Check tokens change nothing.
    case "s", "appcheck", "unappeck":
      requests.send(.reply(number, status: "ok", data: Self.nothing))
    default: throw DatabaseError.invalid("Unknown action")
    }
  }

  private static let nothing = Array(#""""#.utf8)

  private func read(_ number: Int, _ action: String, _ body: JSONTree) throws {
    let path = try DatabasePath(clientText: try text(body["p"]))
    let query = try DatabaseQuery.parse(wire: body["q"])
    switch action {
    case "q":
      let tag = body["t"]?.integer
      session.listen(
        requests.begin(.listen(number)),
        path,
        query: query,
        tag: tag,
        hash: body["h"]?.text
      )
    case "n": session.unlisten(requests.begin(.data(number, Self.nothing)), path, query: query)
    default: session.get(requests.begin(.node(number)), path, query: query)
    }
  }

  private func write(_ number: Int, _ action: String, _ body: JSONTree) throws {
    let location = try DatabaseLocation(clientText: try text(body["p"]))
    guard action != "oc" else {
      let request = requests.begin(.data(number, Self.nothing))
      return session.cancelOnDisconnect(request, location.path)
    }
    let data = body["d"] ?? .null
    var write: DatabaseWrite
    if action == "m" || action == "om" {
      guard let members = data.members, !location.isPriority else {
        throw DatabaseDataError.notAnObject
      }
      write = try DatabaseWrite(merging: members, below: location.path)
    } else {
      write = try DatabaseWrite(data, at: location)
    }
    let request = requests.begin(.data(number, Self.nothing))
    if action == "o" || action == "om" { return session.onDisconnect(request, write) }
    if let hash = body["h"]?.text { write.condition = .hash(hash) }
    session.write(request, write)
  }

  private func text(_ tree: JSONTree?) throws(DatabaseError) -> String {
    guard let text = tree?.text else { throw .invalidPath }
    return text
  }

  // MARK: - Identity

  private func authenticate(
    _ number: Int,
    _ body: JSONTree,
    _ message: ClientMessage,
    isUser: Bool
  ) throws {
    let token = body["cred"]?.text ?? ""
    var override = message.bodyText("authvar").map { String(decoding: $0, as: UTF8.self) }
    if case .boolean(true) = body["noauth"] { override = "null" }
    let grant: DatabaseCredentials.Grant
    do {
      // A token that no user could have is an administrator's.
      grant =
        isUser || DatabaseCredentials.isUserToken(token)
        ? try credentials.grant(token, override: override)
        : DatabaseCredentials.Grant(caller: DatabaseCaller(.admin, override: override))
    } catch {
      return requests.send(.failure(number, status: "invalid_token", error.message))
    }
    // Tests use tokens that have always been expired.
    let time = grant.expirySeconds.map { $0.multipliedReportingOverflow(by: 1000) }
      .flatMap { $0.overflow || $0.partialValue <= now() ? nil : $0.partialValue }
    expiry.withLock { $0 = time }
    session.authenticate(requests.begin(.data(number, grant.json)), as: grant.caller)
  }
}

extension DatabaseCredentials.Grant {
  /// The answer to a client that signs in.
  fileprivate var json: [UInt8] {
    var auth = JSONObjectText()
    if let claims {
      auth.set("uid", claims.text("sub") ?? claims.text("user_id"))
      auth.set("provider", claims.object("firebase")?.text("sign_in_provider"))
      auth.set("token", claims)
    }
    var object = JSONObjectText()
    object.set("auth", auth)
    object.set("expires", expirySeconds)
    return object.bytes
  }
}

/// The requests without a response, and the client's numbers for them.
private final class PendingRequests: Sendable {
  /// What to answer when the request is done.
  enum Answer {
    /// The data that a successful request has.
    case data(Int, [UInt8])
    case listen(Int)
    case node(Int)
    /// A request that the client did not make.
    case silent
  }

  private struct State {
    var answers: [UInt64: Answer] = [:]
    var last: UInt64 = 0
  }

  private let state = Mutex(State())
  private let outlet: Mutex<any MessageOutlet>

  init(_ outlet: any MessageOutlet) {
    self.outlet = Mutex(outlet)
  }

  func move(to next: any MessageOutlet, last: ServerMessage) {
    outlet.withLock { outlet in
      outlet.send(last)
      outlet = next
    }
  }

  var count: Int { state.withLock { $0.answers.count } }

  func begin(_ answer: Answer) -> UInt64 {
    state.withLock { state in
      state.last += 1
      state.answers[state.last] = answer
      return state.last
    }
  }

  /// Sends under the lock, so that no message overtakes another one to the earlier outlet.
  func send(_ message: ServerMessage) { outlet.withLock { $0.send(message) } }

  func take(_ event: DatabaseSessionEvent) {
    switch event {
    case .reply(let request, let result): reply(request, result)
    case .value(let path, let node, let tag): send(.value(path, node, tag: tag))
    case .merge(let path, let nodes, let tag): send(.merge(path, nodes, tag: tag))
    case .revoked(let path, let query, _): send(.revoked(path, query))
    }
  }

  private func reply(
    _ request: UInt64,
    _ result: Result<DatabaseSessionEvent.Reply, DatabaseError>
  ) {
    let (answer, hasRoom) = state.withLock { state in
      let wasFull = state.answers.count >= ClientSession.requestsMax
      let answer = state.answers.removeValue(forKey: request)
      return (answer, wasFull && state.answers.count < ClientSession.requestsMax)
    }
    if let message = answer?.message(result) { send(message) }
    if hasRoom { outlet.withLock { $0 }.hasRoom() }
  }
}

extension PendingRequests.Answer {
  func message(
    _ result: Result<DatabaseSessionEvent.Reply, DatabaseError>
  ) -> ServerMessage? {
    switch (self, result) {
    case (.silent, _): nil
    case (.data(let number, _), .failure(let error)), (.listen(let number), .failure(let error)),
      (.node(let number), .failure(let error)):
      .error(number, error)
    case (.node(let number), .success(.node(let node))): .node(number, node)
    case (.listen(let number), .success(.listening(_?))):
      .reply(number, status: "ok", data: Array(#"{"w":["no_index"]}"#.utf8))
    case (.listen(let number), .success), (.node(let number), .success):
      .reply(number, status: "ok", data: Array("{}".utf8))
    case (.data(let number, let data), .success): .reply(number, status: "ok", data: data)
    }
  }
}
