package import HTTPSupport
import HTTPTypes
import Invocation
import NIOCore
import RuntimeSupport
import Synchronization

/// Serves version 8 of the WebChannel protocol, by which web pages have streams in both directions
/// over plain HTTP requests.
///
/// A POST without a session opens one, and its handler runs; further POSTs bring the client's
/// messages, and a GET that stays open, the back channel, brings the server's. What is lost or comes
/// twice is mended by the numbers that messages have. The source is the client in Google's Closure
/// library, `goog.labs.net.webChannel`, and what the official emulator answers to it.
package final class WebChannels: Sendable {
  /// The bounds of sessions.
  package struct Configuration: Sendable {
    /// The sessions at a time; further ones are refused with 503.
    package var sessionsMax: Int
    /// The longest body of a request, as a form.
    package var bodyBytesMax: Int
    /// The bytes of messages that wait for their handler before the client waits for its answer.
    package var waitingBytesMax: Int
    /// The UTF-16 units that a client may leave unacknowledged before the handler waits.
    package var heldLengthMax: Int
    /// The same of all clients together; beyond it, each still may hold `heldLengthMin`.
    package var heldLengthOfAllMax: Int
    /// The UTF-16 units that a client may leave unacknowledged whatever the others do.
    package var heldLengthMin: Int
    /// The bytes after which a back channel ends, so that the next one acknowledges them.
    package var backChannelLengthMax: Int
    /// The longest silence of a back channel; clients give up after 45 s.
    package var silenceMax: Duration
    /// How long a session lives without a back channel at least; after its first one, twice that at
    /// most.
    package var abandonedAfter: Duration

    /// The bounds; each has a default that suits a development machine.
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

  /// What clients are told of the protocol: its version, the server's, and the longest silence in
  /// milliseconds; they give up after one and a half times that.
  private static let versions = "8,14,30000"
  private static let headersParameter = "$httpHeaders"
  /// Header fields that a client sends in a list; the web's library sends about ten.
  private static let headersMax = 100
  private static let headerBytesMax = 64 << 10
  /// The shortest interval of signs of life that a streaming back channel may ask for.
  private static let silenceMin: Duration = .seconds(1)

  private let configuration: Configuration
  private let clock: any Clock<Duration>
  private let budget: TransferBudget?
  private let heldLengths = HeldLengths()
  private let sessions = Mutex<[String: WebChannelSession]>([:])

  /// No sessions yet.
  ///
  /// What clients leave unacknowledged is counted in `budget`; a session that finds it full ends, and
  /// so does one that keeps it and has stalled.
  package init(
    configuration: Configuration = Configuration(),
    budget: TransferBudget? = nil,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.configuration = configuration
    self.budget = budget
    self.clock = clock
  }

  /// Ends all sessions; their back channels end with them.
  package func endAll() {
    for session in sessions.withLock({ Array($0.values) }) { session.end() }
  }

  /// Answers a request at a channel's address; `handler` serves the session if it opens one.
  ///
  /// An error that the handler throws ends the session and reaches the client as its last message;
  /// one without a status as `INTERNAL`.
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
        // Clients look for these words.
        throw StatusError.invalidArgument("The session is over or never was: Unknown SID.")
      }
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
    let isOpen = sessions.withLock { sessions in
      guard sessions.count < configuration.sessionsMax else { return false }
      sessions[session.id] = session
      return true
    }
    guard isOpen else {
      throw StatusError(
        .unavailable,
        "There are \(configuration.sessionsMax) channels already; close pages that need none."
      )
    }
    let stream = WebChannelStream(headers: headers, parameters: parameters, session: session)
    session.start { try await handler(stream) }
    do {
      _ = try await accept(form, session, acknowledging: nil)
    } catch {
      session.end()
      throw error
    }
    return Self.text(
      WebChannelState.framed(#"[[0,["c","\#(session.id)","",\#(Self.versions)]]]"#)
    )
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

  /// Lets a session take a form's messages; returns the request's answer.
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
    response.body = .produced { write in
      do {
        try await session.backChannel(after: last, streams: streams, interval: interval) {
          try await write(ByteBuffer(string: $0))
        }
      } catch is CancellationError where !Task.isCancelled {
        // The session is over: so is this response, and the client need not ask again.
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

  /// The header fields of a list with one in each line; what is none is left out.
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

/// The body of a POST: messages with their numbers.
private struct Form {
  /// Closure's clients send no more in one request.
  private static let countMax = 1000

  var offset: Int
  var messages: [String]
  var headers: String?

  /// Throws `INVALID_ARGUMENT` for a body that is no such form.
  init(_ body: ByteBuffer) throws(StatusError) {
    guard let text = String(validating: body.readableBytesView, as: UTF8.self) else {
      throw .invalidArgument("The body is not UTF-8.")
    }
    // A message has one field, and a few more are of the form.
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
