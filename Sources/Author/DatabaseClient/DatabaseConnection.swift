import DatabaseModel
import FirestoreClient
import JSONText
import OutboundHTTP

/// A lasting connection to a Realtime Database, whose end the server sees.
///
/// `Database.whileConnected` makes it. The requests of one connection are applied in the order of
/// their calls. Each throws `DatabaseError`: `permissionDenied` if the rules refuse it, and
/// `unavailable` once the connection is lost.
public actor DatabaseConnection {
  private enum Pending {
    case sent
    case answered(Result<Void, DatabaseError>)
    case awaited(CheckedContinuation<Void, any Error>)
  }

  private let socket: MessageSocket
  private var frames: ConnectionFrames
  /// The state of each request; the hello of the server counts as the response to number 0.
  private var pending: [Int: Pending] = [0: .sent]
  private var lastRequest = 0
  private var end: DatabaseError?
  private var messagesCount = 0

  init(_ socket: MessageSocket, bytesMax: Int) {
    self.socket = socket
    frames = ConnectionFrames(bytesMax: bytesMax)
  }

  // MARK: Requests

  /// Replaces a value.
  public func set(_ reference: DatabaseReference, to value: some Encodable) async throws {
    try await request("p", reference, try JSONValue(writing: value))
  }

  /// Replaces a value by an object with the given members.
  public func set(
    _ reference: DatabaseReference,
    to members: [String: any Encodable & Sendable]
  ) async throws {
    try await request("p", reference, try DatabaseReference.object(members))
  }

  /// Replaces the values at paths below a place, all of them or none; nil deletes a value.
  public func update(
    _ reference: DatabaseReference,
    with values: [String: (any Encodable & Sendable)?]
  ) async throws {
    try await request("m", reference, try DatabaseReference.object(values))
  }

  /// Lets the server replace a value once this connection has ended, for whatever reason.
  ///
  /// The rules decide now, and again when the write is made: it is then dropped silently.
  public func onDisconnect(
    set reference: DatabaseReference,
    to value: some Encodable
  ) async throws {
    try await request("o", reference, try JSONValue(writing: value))
  }

  /// Lets the server replace a value by an object once this connection has ended.
  public func onDisconnect(
    set reference: DatabaseReference,
    to members: [String: any Encodable & Sendable]
  ) async throws {
    try await request("o", reference, try DatabaseReference.object(members))
  }

  /// Lets the server replace the values at paths below a place once this connection has ended.
  ///
  /// Nil deletes a value.
  public func onDisconnect(
    update reference: DatabaseReference,
    with values: [String: (any Encodable & Sendable)?]
  ) async throws {
    try await request("om", reference, try DatabaseReference.object(values))
  }

  /// Lets the server delete a value once this connection has ended.
  public func onDisconnect(remove reference: DatabaseReference) async throws {
    try await request("o", reference, .null)
  }

  /// Cancels what the server would do at and below a place once this connection has ended.
  public func cancelOnDisconnect(_ reference: DatabaseReference) async throws {
    try await request("oc", reference, .null)
  }

  private func request(
    _ action: String,
    _ reference: DatabaseReference,
    _ value: JSONValue
  ) async throws {
    let path = "/" + (try reference.validKeys()).joined(separator: "/")
    try await request(action, ["p": .string(path), "d": value])
  }

  private func request(_ action: String, _ body: JSONValue) async throws {
    if let end { throw end }
    lastRequest += 1
    let number = lastRequest
    pending[number] = .sent
    let message = ConnectionMessages.request(number, action, body)
    try await socket.send(ConnectionMessages.frames(of: message))
    try await response(to: number)
  }

  private func response(to number: Int) async throws {
    try await withCheckedThrowingContinuation { continuation in
      if case .answered(let result)? = pending[number] {
        pending[number] = nil
        continuation.resume(with: result.mapError { $0 })
      } else {
        pending[number] = .awaited(continuation)
      }
    }
  }

  private func settle(_ number: Int, _ result: Result<Void, DatabaseError>) {
    switch pending[number] {
    case .sent: pending[number] = .answered(result)
    case .awaited(let continuation):
      pending[number] = nil
      continuation.resume(with: result.mapError { $0 })
    case .answered, nil: break
    }
  }

  // MARK: Running

  /// Runs `body` on the open connection, which stays until it is lost or the task is cancelled.
  func run(
    as identity: CallIdentity,
    token: (action: String, text: String)?,
    _ retries: CallRetries,
    _ body: @escaping @Sendable (DatabaseConnection) async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await self.read() }
      group.addTask { try await self.watch(retries) }
      group.addTask {
        try await self.response(to: 0)
        if let token { try await self.authenticate(token.action, token.text) }
        try await withThrowingTaskGroup(of: Void.self) { work in
          work.addTask { try await body(self) }
          work.addTask { try await self.renew(token?.text, of: identity, retries) }
          // Unlike `waitForAll`, this ends with the first error.
          while try await work.next() != nil {}
        }
      }
      do {
        try await group.next()
        close(DatabaseError(.unavailable, "the connection to the database has ended"))
      } catch {
        close((error as? DatabaseError) ?? .notConnected(error))
        group.cancelAll()
        throw error
      }
      group.cancelAll()
    }
    if let end { throw end }
  }

  private func close(_ error: DatabaseError) {
    end = error
    for number in Array(pending.keys) { settle(number, .failure(error)) }
  }

  private func read() async throws {
    for try await frame in socket.messages {
      messagesCount += 1
      guard let text = try frames.take(frame) else { continue }
      switch try ConnectionMessages.received(text) {
      case .hello: settle(0, .success(()))
      case .response(let number, let result): settle(number, result)
      case .refused(let reason): throw DatabaseError(.failedPrecondition, reason)
      case .reset: throw DatabaseError(.unavailable, "the server asks for another connection")
      case .authRevoked: throw DatabaseError(.unauthenticated, "the token has expired")
      case .other: break
      }
    }
  }

  /// Asks for signs of life, and returns when there was none for a while.
  private func watch(_ retries: CallRetries) async throws {
    var count = -1
    while messagesCount != count {
      count = messagesCount
      if pending[0] == nil { try await socket.send([ConnectionMessages.ping]) }
      try await retries.sleep(Self.pingInterval)
    }
  }

  private func authenticate(_ action: String, _ token: String) async throws {
    try await request(action, ["cred": .string(token)])
  }

  /// Gives the server a user's new tokens; returns only by an error.
  private func renew(
    _ token: String?,
    of identity: CallIdentity,
    _ retries: CallRetries
  ) async throws {
    var token = token
    while true {
      try await retries.sleep(Self.renewalInterval)
      guard case .user(let source) = identity else { continue }
      do {
        let new = try await source.idToken(replacing: nil)
        if new != token { try await authenticate("auth", new) }
        token = new
      } catch let error as DatabaseError where error.code == .unavailable && end == nil {
        // The token in use may still be valid; the server says when it is not.
      }
    }
  }

  /// The time between signs of life; the server answers each.
  private static let pingInterval = Duration.seconds(30)
  /// The time between looks for a new token; a source returns one some minutes before it is needed.
  private static let renewalInterval = Duration.seconds(60)
}

extension Database {
  /// Keeps a connection that the server sees end, and runs `body` each time it has been made.
  ///
  /// ```swift
  /// let me = database.reference("presence/tina")
  /// let now = ServerValue.timestamp
  /// try await database.whileConnected { connection in
  ///   try await connection.onDisconnect(set: me, to: ["online": false, "lastSeen": now])
  ///   try await connection.set(me, to: ["online": true, "lastSeen": now])
  /// }
  /// ```
  ///
  /// When the connection is lost, the server does what `onDisconnect` asked for, and the client
  /// connects again after growing delays. Cancel the task to end the connection. Throws the errors
  /// of `body`, except those of a connection that is lost, and `DatabaseError` if the server
  /// refuses the client for good.
  public func whileConnected(
    _ body: @escaping @Sendable (DatabaseConnection) async throws -> Void
  ) async throws {
    let calls = calls
    let (identity, retries) = (calls.identity, calls.retries)
    var failures = 0
    while true {
      try Task.checkCancellation()
      let start = retries.now()
      do {
        try await calls.authorize { credential in
          let token: (action: String, text: String)? =
            switch credential {
            case .admin: ("gauth", try await calls.adminToken())
            case .idToken(let token): ("auth", token)
            case .anonymous: nil
            }
          try await sockets.withSocket(calls.settings.socketURL) { socket in
            let connection = DatabaseConnection(socket, bytesMax: calls.settings.responseBytesMax)
            try await connection.run(as: identity, token: token, retries, body)
          }
        }
      } catch let error as DatabaseError where error.allowsListeningAgain {
        // The wait below precedes the next attempt.
      }
      failures = retries.now() - start > Self.lastingTime ? 1 : failures + 1
      try await retries.sleep(
        retries.backOff.delay(afterFailures: failures, random: retries.random())
      )
    }
  }

  /// The duration of a connection after which its loss counts as the first failure.
  private static let lastingTime = Duration.seconds(30)
}

extension DatabaseSettings {
  /// The URL of the database's WebSocket.
  fileprivate var socketURL: String {
    let base = url.hasPrefix("https://") ? "wss://" + url.dropFirst(8) : "ws://" + url.dropFirst(7)
    let query = namespace.map { "&ns=\(OutboundURL.encode($0))" } ?? ""
    return "\(base)/.ws?v=5\(query)"
  }
}
