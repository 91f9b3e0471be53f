package import HTTPMessages
package import HTTPSupport
import HTTPTypes
import Identifiers
import NIOCore
import StatusCodes
import Synchronization

/// A server for version 8 of the WebChannel protocol: two-way streams over plain HTTP requests.
///
/// Web pages use the protocol. A POST without a session opens a session, whose handler then runs.
/// Further POSTs carry the client's messages. A GET that stays open, the back channel, carries the
/// server's messages. Message numbers repair the loss and repetition of messages. The sources are
/// the client in Google's Closure library, `goog.labs.net.webChannel`, and the official emulator's
/// responses to it.
package final class WebChannels: Sendable {
  /// The limits of sessions.
  package struct Configuration: Sendable {
    /// The maximum number of sessions at a time; beyond it, the one idle for longest ends.
    package var sessionsMax: Int
    /// The maximum size of a request's form body.
    package var bodyBytesMax: Int
    /// The number of bytes waiting for the handler beyond which a client's request has to wait.
    package var waitingBytesMax: Int
    /// The UTF-16 code units that a client may leave unacknowledged before the handler waits.
    package var heldLengthMax: Int
    /// The UTF-16 code units that all clients together may leave unacknowledged.
    ///
    /// Beyond it, each client may still hold `heldLengthMin`.
    package var heldLengthOfAllMax: Int
    /// The UTF-16 code units that a client may always leave unacknowledged, whatever others hold.
    package var heldLengthMin: Int
    /// The number of bytes after which a back channel ends, so that the next one acknowledges them.
    package var backChannelLengthMax: Int
    /// The longest silence of a back channel; clients give up after 45 s.
    package var silenceMax: Duration
    /// The minimum time that a session lives without a back channel.
    ///
    /// After its first back channel it lives at most twice as long.
    package var abandonedAfter: Duration

    /// Creates limits; each has a default that suits a development machine.
    package init(
      sessionsMax: Int = 20_000,
      bodyBytesMax: Int = 36 << 20,
      waitingBytesMax: Int = 4 << 20,
      heldLengthMax: Int = 4 << 20,
      heldLengthOfAllMax: Int = 128 << 20,
      heldLengthMin: Int = 64 << 10,
      backChannelLengthMax: Int = 1 << 20,
      silenceMax: Duration = .seconds(25),
      abandonedAfter: Duration = .seconds(60)
    ) {
      self.sessionsMax = sessionsMax
      self.bodyBytesMax = bodyBytesMax
      self.waitingBytesMax = waitingBytesMax
      self.heldLengthMax = heldLengthMax
      self.heldLengthOfAllMax = heldLengthOfAllMax
      self.heldLengthMin = heldLengthMin
      self.backChannelLengthMax = backChannelLengthMax
      self.silenceMax = silenceMax
      self.abandonedAfter = abandonedAfter
    }
  }

  /// The protocol's version, the server's version, and the longest silence in milliseconds.
  ///
  /// Clients give up after one and a half times that silence.
  private static let versions = "8,14,30000"
  private static let headersParameter = "$httpHeaders"
  /// The maximum number of header fields in a client's list; the web library sends about ten.
  private static let headersMax = 100
  private static let headerBytesMax = 64 << 10
  /// The shortest keep-alive interval that a streaming back channel may request.
  private static let silenceMin: Duration = .seconds(1)

  private let configuration: Configuration
  private let clock: any Clock<Duration>
  private let budget: TransferBudget?
  private let heldLengths = HeldLengths()
  private let sessions = Mutex<[String: WebChannelSession]>([:])
  /// The number of uses of all sessions, which tells the order of their last uses.
  private let uses = Atomic<UInt64>(0)

  /// Creates a server without sessions.
  ///
  /// `budget` counts unacknowledged messages. A session that finds the budget full ends. A stalled
  /// session also ends if others need the memory that it holds.
  package init(
    configuration: Configuration = Configuration(),
    budget: TransferBudget? = nil,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.configuration = configuration
    self.budget = budget
    self.clock = clock
  }

  /// Ends all sessions and their back channels.
  package func endAll() {
    for session in sessions.withLock({ Array($0.values) }) { session.end() }
  }

  /// Responds to a request at a channel's URL; `handler` runs the session if the request opens one.
  ///
  /// An error that the handler throws ends the session and is sent to the client as the last
  /// message. An error without a status is sent as `INTERNAL`.
  package func respond(
    to request: Request,
    handler: @escaping @Sendable (WebChannelStream) async throws -> Void
  ) async -> Response {
    let parameters = request.query
    do {
      guard let id = parameters["SID"] else {
        guard request.method == .post else {
          throw StatusError.invalidArgument("A channel is opened by a POST, or named by its SID.")
        }
        return try await open(request, parameters, handler)
      }
      guard let session = sessions.withLock({ $0[id] }) else {
        // Clients search for the text "Unknown SID".
        throw StatusError.invalidArgument("The session is over or never was: Unknown SID.")
      }
      use(session)
      if parameters["TYPE"] == "terminate" {
        session.end()
        return Self.text("")
      }
      switch request.method {
      case .post: return try await take(request, parameters, session)
      case .get: return try backChannel(parameters, session)
      default: throw StatusError.invalidArgument("A channel answers to GET and POST.")
      }
    } catch {
      return .error(error)
    }
  }

  private func open(
    _ request: Request,
    _ parameters: QueryParameters,
    _ handler: @escaping @Sendable (WebChannelStream) async throws -> Void
  ) async throws -> Response {
    guard parameters["VER"] == "8" else {
      throw StatusError.invalidArgument("VER must be 8, the version of the protocol.")
    }
    let form = try Form(await request.wholeBody(upTo: configuration.bodyBytesMax))
    var headers = request.headers
    for text in [parameters[Self.headersParameter], form.headers] {
      for (name, value) in try Self.fields(text ?? "") { headers[name] = value }
    }
    let session = WebChannelSession(
      id: RandomID.make(length: 24),
      configuration: configuration,
      clock: clock,
      heldLengths: heldLengths,
      budget: budget
    ) { [weak self] id in
      _ = self?.sessions.withLock { $0.removeValue(forKey: id) }
    }
    do {
      _ = try await accept(form, session, acknowledging: nil)
    } catch {
      session.end()
      throw error
    }
    use(session)
    let displaced = sessions.withLock { sessions in
      var displaced: WebChannelSession?
      if sessions.count >= configuration.sessionsMax,
        let (id, _) = sessions.min(by: { $0.value.isIdler(than: $1.value) })
      {
        displaced = sessions.removeValue(forKey: id)
      }
      sessions[session.id] = session
      return displaced
    }
    // Its client opens a new session, as after any session that has ended.
    displaced?.end()
    let stream = WebChannelStream(headers: headers, parameters: parameters, session: session)
    session.start { try await handler(stream) }
    return Self.text(
      WebChannelState.framed(#"[[0,["c","\#(session.id)","",\#(Self.versions)]]]"#)
    )
  }

  private func use(_ session: WebChannelSession) {
    session.use(uses.wrappingAdd(1, ordering: .relaxed).newValue)
  }

  private func take(
    _ request: Request,
    _ parameters: QueryParameters,
    _ session: WebChannelSession
  ) async throws -> Response {
    let form = try Form(await request.wholeBody(upTo: configuration.bodyBytesMax))
    let last = try parameters.number("AID", in: 0...Int.max)
    return Self.text(
      WebChannelState.framed(try await accept(form, session, acknowledging: last))
    )
  }

  /// Passes a form's messages to a session; returns the text of the response.
  private func accept(
    _ form: Form,
    _ session: WebChannelSession,
    acknowledging last: Int?
  ) async throws -> String {
    do {
      if let report = try await session.accept(
        form.messages,
        from: form.offset,
        acknowledging: last
      ) {
        return report
      }
    } catch is CancellationError {
      throw StatusError.invalidArgument("The session has just ended: Unknown SID.")
    }
    throw StatusError.invalidArgument(
      "Message \(form.offset) is too far ahead of those that are there."
    )
  }

  private func backChannel(
    _ parameters: QueryParameters,
    _ session: WebChannelSession
  ) throws -> Response {
    guard parameters["RID"] == "rpc" else {
      throw StatusError.invalidArgument("A back channel has RID=rpc.")
    }
    let last = try parameters.number("AID", in: 0...Int.max) ?? 0
    let streams = parameters["CI"] != "1"
    let timeout = try parameters.number("TO", in: 1...Int.max)
    let wanted = Duration.milliseconds(timeout ?? .max)
    let interval = min(configuration.silenceMax, streams ? max(wanted, Self.silenceMin) : wanted)
    var response = Self.text("")
    response.body = .produced { [self] write in
      defer { use(session) }
      do {
        try await session.backChannel(after: last, streams: streams, interval: interval) {
          try await write(ByteBuffer(string: $0))
        }
      } catch is CancellationError where !Task.isCancelled {
        // The session is over, so this response ends as well; the client need not ask again.
      }
    }
    return response
  }

  private static func text(_ text: String) -> Response {
    var response = Response.text(text)
    response.headers[.cacheControl] = "private, no-store"
    response.headers[.xContentTypeOptions] = "nosniff"
    return response
  }

  /// Parses a list of header fields, one per line; malformed lines are skipped.
  private static func fields(_ text: String) throws(StatusError) -> [(HTTPField.Name, String)] {
    guard text.utf8.count <= headerBytesMax else {
      throw .invalidArgument("The header fields have more than \(headerBytesMax) bytes.")
    }
    let lines = text.split(maxSplits: headersMax, whereSeparator: \.isNewline)
    guard lines.count <= headersMax else {
      throw .invalidArgument("There are more than \(headersMax) header fields.")
    }
    return lines.compactMap { line in
      guard let colon = line.firstIndex(of: ":"),
        let name = HTTPField.Name(String(line[..<colon]))
      else { return nil }
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      return HTTPField.isValidValue(String(value)) ? (name, String(value)) : nil
    }
  }
}

/// The body of a POST: messages and their numbers.
private struct Form {
  /// The maximum number of messages in a request; Closure's clients send no more.
  private static let countMax = 1000

  var offset: Int
  var messages: [String]
  var headers: String?

  /// Parses a form body; throws `INVALID_ARGUMENT` if it is malformed.
  init(_ body: ByteBuffer) throws(StatusError) {
    guard let text = String(validating: body.readableBytesView, as: UTF8.self) else {
      throw .invalidArgument("The body is not UTF-8.")
    }
    // Each message is one form field, and a few more fields belong to the form itself.
    guard text.utf8.count(where: { $0 == UInt8(ascii: "&") }) <= Self.countMax + 20 else {
      throw .invalidArgument("The body has more than \(Self.countMax) messages.")
    }
    let form = QueryParameters(text)
    let count = try form.number("count", in: 0...Self.countMax) ?? 0
    offset = try form.number("ofs", in: 0...Int.max - Self.countMax) ?? 0
    headers = form["headers"]
    let values = Dictionary(form.items.map { ($0.name, $0.value) }) { first, _ in first }
    messages = []
    for index in 0..<count {
      guard let message = values["req\(index)___data__"] else {
        throw .invalidArgument("count is \(count), but req\(index)___data__ is missing.")
      }
      messages.append(message)
    }
  }
}
