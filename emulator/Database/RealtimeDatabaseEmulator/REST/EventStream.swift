import DatabaseModel
import DatabaseTree
import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import JSONText
import Synchronization

extension RealtimeDatabaseService {
  /// Returns the stream of a node's changes; throws if the node may not be read.
  func events(
    _ call: RESTCall,
    _ instance: DatabaseInstance,
    _ grant: DatabaseCredentials.Grant
  ) async throws -> Response {
    guard !call.location.isPriority else { throw DatabaseError.invalidPath }
    let stream = EventStream(call.path, expirySeconds: grant.expirySeconds, now: now, clients)
    try await stream.open(on: instance, query: call.query, as: grant.caller)
    return Response(
      status: .ok,
      headers: [.contentType: ServerSentEvents.mediaType, .cacheControl: "no-cache"],
      body: .produced { write in try await stream.write(to: write) }
    )
  }
}

/// The changes of a node, on their way to a client that reads them as an event stream.
final class EventStream: ConnectedClient {
  /// The number of events that may wait for the client, before the stream ends.
  private static let eventsMax = 1000
  private static let keepAliveInterval = Duration.seconds(30)

  private struct State {
    var session: DatabaseSession?
    var silence = Silence(keepAliveInterval)
    var expirySeconds: Int64?
  }

  private let path: DatabasePath
  private let clients: ClientRoster
  private let state: Mutex<State>
  private let events: AsyncStream<ByteBuffer>
  private let inlet: Inlet

  init(
    _ path: DatabasePath,
    expirySeconds: Int64?,
    now: Int64,
    _ clients: ClientRoster
  ) {
    self.path = path
    self.clients = clients
    // Tests use tokens that have always been expired.
    let isAhead = expirySeconds.map { $0 * 1000 > now } ?? false
    state = Mutex(State(expirySeconds: isAhead ? expirySeconds : nil))
    let (events, source) = AsyncStream.makeStream(
      of: ByteBuffer.self,
      bufferingPolicy: .bufferingOldest(Self.eventsMax)
    )
    self.events = events
    inlet = Inlet(path, source)
    clients.enter(self)
  }

  deinit {
    clients.leave(self)
    disconnect()
  }

  /// Starts listening; throws if the node may not be read.
  func open(
    on instance: DatabaseInstance,
    query: DatabaseQuery?,
    as caller: DatabaseCaller
  ) async throws {
    let inlet = inlet
    let session = instance.open(as: caller) { inlet.take($0) }
    state.withLock { $0.session = session }
    session.listen(0, path, query: query, tag: nil, hash: nil)
    for await answer in inlet.answers { return try answer.get() }
    throw CancellationError()
  }

  /// Writes the events until the stream ends or the client leaves.
  func write(to write: Response.Body.Write) async throws {
    defer { disconnect() }
    for await event in events {
      try await write(event)
      state.withLock { $0.silence.end() }
    }
  }

  func tick(atMilliseconds now: Int64) {
    let (isExpired, isSilent) = state.withLock { state in
      let isSilent = state.silence.tick()
      if isSilent { state.silence.end() }
      return (state.expirySeconds.map { $0 * 1000 <= now } ?? false, isSilent)
    }
    if isExpired {
      inlet.end(with: "auth_revoked", Array(#""credential is no longer valid""#.utf8))
    } else if isSilent {
      inlet.send("keep-alive", Array("null".utf8))
    }
  }

  func disconnect() {
    inlet.end()
    state.withLock { $0.session.take() }?.close()
  }

  /// The end of the stream at which events enter.
  private final class Inlet: Sendable {
    private let path: DatabasePath
    private let source: AsyncStream<ByteBuffer>.Continuation
    /// The answer to the request, which comes once.
    let answers: AsyncStream<Result<Void, DatabaseError>>
    private let answer: AsyncStream<Result<Void, DatabaseError>>.Continuation

    init(_ path: DatabasePath, _ source: AsyncStream<ByteBuffer>.Continuation) {
      self.path = path
      self.source = source
      (answers, answer) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1))
    }

    func take(_ event: DatabaseSessionEvent) {
      switch event {
      case .reply(_, .success(.listening(let missingIndex?))):
        answer.yield(.failure(DatabaseError(.missingIndex, missingIndex)))
      case .reply(_, let result): answer.yield(result.map { _ in })
      case .value(let changed, let node, _): send("put", data(changed, node.node.json(.plain)))
      case .merge(let changed, let nodes, _):
        var object = JSONObjectText()
        for member in nodes.members {
          object.set(member.path.keys.joined(separator: "/"), json: member.node.json(.plain))
        }
        send("patch", data(changed, object.bytes))
      case .revoked: end(with: "cancel", Array("null".utf8))
      }
    }

    private func data(_ changed: DatabasePath, _ json: [UInt8]) -> [UInt8] {
      var data = Array(#"{"path":"#.utf8)
      data.appendJSONQuoted(changed.dropFirst(path.count).description)
      data += #","data":"#.utf8
      data += json
      data.append(UInt8(ascii: "}"))
      return data
    }

    func send(_ name: String, _ json: [UInt8]) {
      let result = source.yield(ServerSentEvents.frame(json, event: name))
      // The client does not read: it has to connect again for the current value.
      if case .dropped = result { source.finish() }
    }

    func end(with name: String, _ json: [UInt8]) {
      send(name, json)
      end()
    }

    func end() {
      source.finish()
      answer.finish()
    }
  }
}
