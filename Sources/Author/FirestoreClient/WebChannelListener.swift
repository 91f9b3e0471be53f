import FirestoreProtos
import JSONText
import OutboundHTTP
import StatusCodes
import SwiftProtobuf
import Synchronization

/// A client that listens over WebChannel, as Firestore's web library does.
///
/// REST does not support Listen, and WebChannel needs only HTTP/1.1. A POST opens the channel with
/// the request. The responses then arrive in a series of long GETs, each of which acknowledges the
/// earlier ones.
final class WebChannelListener: Sendable {
  /// The maximum number of concurrent listeners.
  ///
  /// Each of them occupies a connection, and other calls need connections too.
  static let listenersMax = 64
  /// The silence after which the server is considered dead.
  ///
  /// It sends a message every 30 seconds.
  static let silenceMax: Duration = .seconds(75)

  private let endpoint: String
  private let http: any HTTPTransport
  private let chunkBytesMax: Int
  private let open = Mutex(0)

  /// Creates a listener for the base URL without `/v1`.
  init(endpoint: String, http: any HTTPTransport, chunkBytesMax: Int) {
    self.endpoint = endpoint
    self.http = http
    self.chunkBytesMax = chunkBytesMax
  }

  /// Listens with a token until the server ends the stream or the task is cancelled.
  ///
  /// Throws `FirestoreError`.
  func listen(
    _ request: Google_Firestore_V1_ListenRequest,
    token: String?,
    _ body: @escaping @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
  ) async throws {
    let isFree = open.withLock { open in
      guard open < Self.listenersMax else { return false }
      open += 1
      return true
    }
    guard isFree else {
      throw FirestoreError(
        .failedPrecondition,
        "\(Self.listenersMax) listeners are open already, each with a connection; listen to fewer "
          + "queries in one process, or declare triggers"
      )
    }
    defer { open.withLock { $0 -= 1 } }
    let session = try await begin(request, token: token)
    defer { end(session, of: request) }
    let last = LastHeard()
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask { try await self.read(session, of: request, last, body) }
      group.addTask { try await last.silence(Self.silenceMax) }
      try await group.next()
    }
  }

  /// Opens a channel and returns the id of its session.
  private func begin(
    _ request: Google_Firestore_V1_ListenRequest,
    token: String?
  ) async throws -> String {
    var headers = "Content-Type:text/plain\r\n"
    if let token { headers += "Authorization:Bearer \(token)\r\n" }
    let message: String
    do {
      message = try request.jsonString()
    } catch {
      throw FirestoreError(.invalidArgument, "the request cannot be written as JSON: \(error)")
    }
    let form = [("headers", headers), ("count", "1"), ("ofs", "0"), ("req0___data__", message)]
    let response = try await calling {
      try await http.send(
        OutboundRequest(
          method: "POST",
          url: address(request, [("CVER", "22"), ("RID", "1"), ("t", "1")]),
          headers: ["Content-Type": "application/x-www-form-urlencoded"],
          body: Array(
            form.map { "\($0)=\(OutboundURL.encode($1))" }.joined(separator: "&").utf8
          )
        )
      )
    }
    guard response.isSuccess else { throw RESTTransport.error(of: response) }
    // [[0,["c",SESSION,HOST,8,…]]]
    guard let array = try chunks(response.body).first?.first else {
      throw Self.strange("the opening of a channel has no array")
    }
    let opening = try elements(try numbered(array).payload)
    guard opening.count > 1,
      // The decoding error has no useful details: text that is not a string is no session id.
      let session = try? String(decodingJSON: opening[1])
    else { throw Self.strange("the opening of a channel has no session") }
    return session
  }

  private func read(
    _ session: String,
    of request: Google_Firestore_V1_ListenRequest,
    _ last: LastHeard,
    _ body: @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
  ) async throws {
    var acknowledged = 0
    while true {
      let url = address(
        request,
        [
          ("RID", "rpc"), ("SID", session), ("AID", "\(acknowledged)"), ("CI", "0"),
          ("TYPE", "xmlhttp"), ("t", "1"),
        ]
      )
      last.waits()
      let response = try await calling {
        try await http.stream(
          OutboundRequest(url: url, timeout: nil, responseBytesMax: .max)
        )
      }
      guard response.isSuccess else {
        throw FirestoreError(.unavailable, "the channel returned \(response.status)")
      }
      let first = acknowledged
      var frames = WebChannelFrames(bytesMax: chunkBytesMax)
      var pieces = response.body.makeAsyncIterator()
      while true {
        last.waits()
        guard let piece = try await calling({ try await pieces.next() }) else { break }
        last.heard()
        for array in try chunks(piece, &frames).joined() {
          let (number, payload) = try numbered(array)
          guard number > acknowledged else { continue }
          guard number == acknowledged + 1 else {
            throw FirestoreError(.unavailable, "the channel has lost something")
          }
          acknowledged = number
          switch try answer(payload) {
          case .nothing: break
          case .end: return
          case .message(let message): try await body(message)
          }
        }
      }
      // A server has a message for each new GET. Without one, another GET would only repeat this in
      // a tight loop.
      guard acknowledged > first else {
        throw FirestoreError(.unavailable, "the channel ended without a word")
      }
    }
  }

  /// Tells the server that the listener has ended.
  ///
  /// Without this message the server would notice it within a minute.
  private func end(_ session: String, of request: Google_Firestore_V1_ListenRequest) {
    let url = address(request, [("RID", "2"), ("SID", session), ("TYPE", "terminate"), ("t", "1")])
    // The listening task may be cancelled, so it does not wait for this request.
    Task { [http] in
      // A failure has no consequence, because the server notices the end anyway.
      _ = try? await http.send(OutboundRequest(method: "POST", url: url, timeout: .seconds(5)))
    }
  }

  // MARK: Messages

  private enum Answer {
    case nothing
    case end
    case message(Google_Firestore_V1_ListenResponse)
  }

  private func answer(_ payload: [UInt8]) throws -> Answer {
    guard let part = try elements(payload).first else { return .nothing }
    switch String(decoding: part, as: UTF8.self) {
    case "\"noop\"": return .nothing
    case "\"close\"", "\"stop\"": return .end
    default:
      if let error = RESTTransport.error(in: part) { throw FirestoreError(error) }
      do {
        return .message(
          try Google_Firestore_V1_ListenResponse(
            jsonUTF8Bytes: part,
            options: RESTTransport.lenient
          )
        )
      } catch {
        throw RESTTransport.undecodable(error)
      }
    }
  }

  /// Returns the arrays of a complete body.
  private func chunks(_ body: [UInt8]) throws -> [[[UInt8]]] {
    var frames = WebChannelFrames(bytesMax: chunkBytesMax)
    return try chunks(body, &frames)
  }

  /// Returns the arrays of the chunks that are complete so far.
  private func chunks(_ bytes: [UInt8], _ frames: inout WebChannelFrames) throws -> [[[UInt8]]] {
    do {
      try frames.append(bytes)
      var chunks: [[[UInt8]]] = []
      while let chunk = try frames.next() { chunks.append(try elements(chunk)) }
      return chunks
    } catch is WebChannelFrames.MalformedError {
      throw Self.strange("a channel has something that is not a chunk, or a larger one than fits")
    }
  }

  private func numbered(_ array: [UInt8]) throws -> (number: Int, payload: [UInt8]) {
    let parts = try elements(array)
    guard parts.count == 2, let number = Int(String(decoding: parts[0], as: UTF8.self)) else {
      throw Self.strange("an array of a channel has no number")
    }
    return (number, parts[1])
  }

  private func elements(_ text: [UInt8]) throws -> [[UInt8]] {
    do {
      if let elements = try jsonElements(of: text, loneSurrogates: .replaced) { return elements }
    } catch {
      throw Self.strange("a channel has no JSON: \(error)")
    }
    throw Self.strange("a channel has something else than arrays")
  }

  private static func strange(_ what: String) -> FirestoreError {
    FirestoreError(.internal, "\(what); is there Firestore behind the address?")
  }

  // MARK: Requests

  private func address(
    _ request: Google_Firestore_V1_ListenRequest,
    _ query: [(name: String, value: String)]
  ) -> String {
    OutboundURL.make(
      base: endpoint,
      path: ["google.firestore.v1.Firestore", "Listen", "channel"],
      query: [("VER", "8"), ("database", request.database)] + query
    )
  }

  private func calling<Value>(_ call: () async throws -> Value) async throws -> Value {
    do {
      return try await call()
    } catch let error as OutboundHTTPError {
      try Task.checkCancellation()
      throw FirestoreError(error.statusCode, error.statusMessage)
    }
  }
}

/// The time at which a server last sent something, measured only while a response is awaited.
private final class LastHeard: Sendable {
  private let waitingSince = Mutex<ContinuousClock.Instant?>(nil)

  func waits() { waitingSince.withLock { $0 = .now } }

  func heard() { waitingSince.withLock { $0 = nil } }

  /// Waits until the server has been silent for `most`, and then throws `unavailable`.
  ///
  /// Throws `CancellationError` if the task is cancelled first.
  func silence(_ most: Duration) async throws {
    var rest = most
    while rest > .zero {
      try await Task.sleep(for: rest)
      rest = waitingSince.withLock { $0.map { most - (.now - $0) } } ?? most
    }
    throw FirestoreError(.unavailable, "the server has been silent for \(most)")
  }
}
