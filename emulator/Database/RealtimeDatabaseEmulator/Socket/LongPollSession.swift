import Cryptography
import DatabaseTree
import HTTPMessages
import HTTPSupport
import Synchronization

/// A session of a web page that begins by requesting scripts, before it gets to a WebSocket.
final class LongPollSession: MessageOutlet, ConnectedClient {
  /// The number of segments that may arrive before the one that is due.
  private static let segmentsAheadMax = MessageAssembly.piecesMax
  /// The size of the segments that may wait, far more than a page sends before it has a WebSocket.
  private static let segmentBytesMax = 4 << 20
  /// The number of messages that may wait for the next request.
  private static let messagesMax = 10_000
  /// The time without a request after which the client counts as gone.
  private static let silenceMax = Duration.seconds(60)

  let id: String
  let password: String
  let instanceName: String
  private let onEnd: @Sendable (LongPollSession) -> Void

  private struct State {
    var session: ClientSession?
    var messages: [ServerMessage] = []
    /// The request that waits for messages.
    var waiting: CheckedContinuation<Void, Never>?
    var polls = 0
    /// The number of the next answer.
    var answers = 0
    var segments: [Int: (count: Int, data: String)] = [:]
    var segmentBytes = 0
    var nextSegment = 0
    /// Takes the session over, once the client says that it has sent its last segment.
    var successor: Successor?
    var hasClientEnded = false
    /// True while one of the requests handles the messages of all.
    var isHandling = false
    var silence = Silence(silenceMax)
    var isEnded = false

    mutating func takeMessage() -> String? {
      guard let first = segments[nextSegment] else { return nil }
      let numbers = nextSegment..<(nextSegment + first.count)
      let pieces = numbers.compactMap { segments[$0]?.data }
      guard pieces.count == numbers.count else { return nil }
      for number in numbers { segments[number] = nil }
      nextSegment = numbers.upperBound
      let text = pieces.joined()
      segmentBytes -= text.utf8.count
      return text
    }

    /// Returns the session with its successor once the client and the socket are ready.
    mutating func takeOver() -> (ClientSession, Successor)? {
      guard hasClientEnded, let session, let successor else { return nil }
      self.session = nil
      return (session, successor)
    }

    mutating func takeWaiting() -> CheckedContinuation<Void, Never>? {
      defer { waiting = nil }
      return waiting
    }
  }

  private let state = Mutex(State())

  /// A WebSocket on which a session goes on.
  struct Successor: Sendable {
    var outlet: any MessageOutlet
    var take: @Sendable (ClientSession) -> Void
  }

  init(
    id: String,
    password: String,
    instanceName: String,
    onEnd: @escaping @Sendable (LongPollSession) -> Void
  ) {
    self.id = id
    self.password = password
    self.instanceName = instanceName
    self.onEnd = onEnd
  }

  func start(_ session: ClientSession) { state.withLock { $0.session = session } }

  // MARK: - To the client

  func send(_ message: ServerMessage) {
    let (waiting, isTooSlow) = state.withLock { state in
      if !state.isEnded { state.messages.append(message) }
      return (state.takeWaiting(), state.messages.count > Self.messagesMax)
    }
    waiting?.resume()
    if isTooSlow { disconnect() }
  }

  // Requests are not held back: each has its own answer.
  func hasRoom() {}

  /// Waits for messages until the time is over or a newer request takes its place.
  func poll(for timeMax: Duration, _ clock: any Clock<Duration>) async -> String {
    let (number, previous) = state.withLock { state in
      state.silence.end()
      state.polls += 1
      return (state.polls, state.takeWaiting())
    }
    previous?.resume()
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.wait(number) }
      group.addTask {
        // Cancelled once there are messages.
        try? await clock.sleep(for: timeMax)
      }
      await group.next()
      release(number)
      group.cancelAll()
    }
    return answer(number)
  }

  private func wait(_ number: Int) async {
    await withCheckedContinuation { continuation in
      let waits = state.withLock { state in
        guard state.polls == number, state.messages.isEmpty, !state.isEnded else { return false }
        state.waiting = continuation
        return true
      }
      if !waits { continuation.resume() }
    }
  }

  private func release(_ number: Int) {
    let waiting = state.withLock { $0.polls == number ? $0.takeWaiting() : nil }
    waiting?.resume()
  }

  /// Returns the script with the messages that wait; only the newest request gets them.
  func answer(_ number: Int? = nil) -> String {
    let (messages, answer, isEnded) = state.withLock { state -> ([ServerMessage], Int, Bool) in
      defer { state.answers += 1 }
      guard number ?? state.polls == state.polls else { return ([], state.answers, false) }
      defer { state.messages = [] }
      return (state.messages, state.answers, state.isEnded)
    }
    guard !isEnded else { return "pLPCommand('close');" }
    let list = messages.map { String(decoding: $0.json, as: UTF8.self) }.joined(separator: ",")
    return "pRTLPCB(\(answer),[\(Self.escaped(list))]);"
  }

  /// Escapes the line ends that JSON may contain, but older scripts may not.
  private static func escaped(_ json: String) -> String {
    json.replacing("\u{2028}", with: "\\u2028").replacing("\u{2029}", with: "\\u2029")
  }

  // MARK: - From the client

  /// Takes the segments of a request; false for what no client sends.
  func take(_ parameters: QueryParameters) -> Bool {
    var index = 0
    while let number = parameters["seg\(index)"] {
      guard let number = Int(number), let count = parameters["ts\(index)"].flatMap({ Int($0) }),
        (1...MessageAssembly.piecesMax).contains(count), let data = parameters["d\(index)"],
        add(number, count, data)
      else { return false }
      index += 1
    }
    var isBegun = false
    while let (message, session) = nextMessage(&isBegun) {
      if case .control("n")? = ClientMessage(message)?.content {
        state.withLock { $0.hasClientEnded = true }
        handOver()
      } else {
        session?.receive(message)
      }
    }
    return true
  }

  private func add(_ number: Int, _ count: Int, _ data: String) -> Bool {
    state.withLock { state in
      // Clients repeat what they do not know to have arrived.
      guard number >= state.nextSegment, state.segments[number] == nil else { return true }
      guard number - state.nextSegment < Self.segmentsAheadMax,
        state.segmentBytes + data.utf8.count <= Self.segmentBytesMax
      else { return false }
      state.segments[number] = (count, data)
      state.segmentBytes += data.utf8.count
      return true
    }
  }

  /// Returns the next message whose segments are all there; nil if another request handles it.
  private func nextMessage(_ isBegun: inout Bool) -> ([UInt8], ClientSession?)? {
    let (text, session) = state.withLock { state -> (String?, ClientSession?) in
      guard isBegun || !state.isHandling else { return (nil, nil) }
      let text = state.takeMessage()
      isBegun = text != nil
      state.isHandling = isBegun
      return (text, state.session)
    }
    // A malformed text becomes a message that the session answers with an error.
    return text.map { (Base64URL.decode($0.filter { $0 != "." }) ?? [], session) }
  }

  // MARK: - The end

  /// Lets a WebSocket continue the session, as soon as the client has sent its last segment here.
  func goOn(_ successor: Successor) {
    state.withLock { $0.successor = successor }
    handOver()
  }

  /// Moves the session to the socket; the answers that the client still gets here come first.
  private func handOver() {
    guard let (session, successor) = state.withLock({ $0.takeOver() }) else { return }
    session.move(to: successor.outlet, last: .control("n"))
    successor.take(session)
  }

  func tick(atMilliseconds now: Int64) {
    let (isGone, session) = state.withLock { state in
      if state.waiting != nil { state.silence.end() }
      return (state.silence.tick(), state.session)
    }
    if isGone { disconnect() }
    session?.tick(atMilliseconds: now)
  }

  func disconnect() {
    let (session, waiting) = state.withLock { state in
      defer { state.session = nil }
      state.isEnded = true
      state.messages = []
      state.segments = [:]
      return (state.session, state.takeWaiting())
    }
    waiting?.resume()
    session?.close()
    onEnd(self)
  }
}

/// The sessions of long polling.
final class LongPollSessions: Sendable {
  /// The maximum number of sessions; each lasts for the moment before the WebSocket is open.
  private static let countMax = 1000
  private let sessions = Mutex<[String: LongPollSession]>([:])

  /// Adds a session; false if there are too many.
  func add(_ session: LongPollSession) -> Bool {
    sessions.withLock { sessions in
      guard sessions.count < Self.countMax else { return false }
      sessions[session.id] = session
      return true
    }
  }

  func remove(_ session: LongPollSession) { sessions.withLock { $0[session.id] = nil } }

  /// Returns the session that a request belongs to; nil if it is over or never was.
  func session(_ parameters: QueryParameters) -> LongPollSession? {
    guard let id = parameters["id"], let session = sessions.withLock({ $0[id] }),
      session.password == parameters["pw"]
    else { return nil }
    return session
  }

  /// Returns the session that a socket may continue; nil if it is over or never was.
  func session(_ id: String, of instance: String) -> LongPollSession? {
    sessions.withLock { $0[id] }.flatMap { $0.instanceName == instance ? $0 : nil }
  }
}
