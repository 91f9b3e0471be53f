import DequeModule

/// What one session knows of the messages of both directions; no task and no clock.
///
/// The client's messages are numbered from 0 and handed out once, in order, however often and in
/// whatever order requests bring them. The server's arrays are numbered from 1, the handshake being
/// 0, and are kept until the client acknowledges them.
struct WebChannelState {
  /// One array for the client.
  private struct Outgoing {
    var id: Int
    /// `[id,payload]`.
    var text: String
    /// In the protocol's unit: UTF-16.
    var length: Int
  }

  /// A chunk of a back channel.
  struct Chunk: Equatable {
    /// The length, a line end, and the arrays.
    var text: String
    /// The last array in it.
    var last: Int
    var isLastOfSession: Bool
  }

  /// How far ahead of a missing message later ones are kept, and their bytes.
  private static let aheadMax = 1000
  private static let aheadBytesMax = 4 << 20
  /// The length after which a chunk ends, so that a client can begin to read.
  private static let chunkLength = 64 << 10

  private var nextMessage = 0
  private var early: [Int: String] = [:]
  private(set) var earlyBytes = 0
  private var messages = Deque<String>()
  /// The bytes of messages that wait for the handler.
  private(set) var waitingBytes = 0

  private var arrays = Deque<Outgoing>()
  private var lastArray = 0
  /// The length of what the client has not acknowledged.
  private(set) var heldLength = 0
  /// The last array that a back channel has sent, and the length of what the client has not
  /// acknowledged of that.
  private var lastSent = 0
  private var sentLength = 0
  /// Whether nothing follows what is there.
  private(set) var isComplete = false
  /// Whether the handler waits until the client has acknowledged something.
  var isHeldUp = false

  /// The back channel that is open; a later one has a greater number.
  private var backChannel: Int?
  private var backChannels = 0

  // MARK: From the client

  /// Takes messages of which the first has number `offset`; those known already are left out.
  ///
  /// Returns false, and takes none, when they are further ahead than any client sends.
  mutating func accept(_ texts: [String], from offset: Int) -> Bool {
    guard (0...nextMessage + Self.aheadMax).contains(offset) else { return false }
    let bytes = texts.reduce(0) { $0 + $1.utf8.count }
    guard offset <= nextMessage || earlyBytes + bytes <= Self.aheadBytesMax else { return false }
    for (index, text) in texts.enumerated() where offset + index >= nextMessage {
      earlyBytes -= early[offset + index]?.utf8.count ?? 0
      early[offset + index] = text
      earlyBytes += text.utf8.count
    }
    while let text = early.removeValue(forKey: nextMessage) {
      nextMessage += 1
      earlyBytes -= text.utf8.count
      messages.append(text)
      waitingBytes += text.utf8.count
    }
    return true
  }

  /// The next message; nil while there is none yet.
  mutating func popMessage() -> String? {
    guard let text = messages.popFirst() else { return nil }
    waitingBytes -= text.utf8.count
    return text
  }

  // MARK: To the client

  /// Adds an array with a payload that is JSON.
  mutating func append(payload: String) {
    guard !isComplete else { return }
    lastArray += 1
    let text = "[\(lastArray),\(payload)]"
    let length = text.utf16.count
    arrays.append(Outgoing(id: lastArray, text: text, length: length))
    heldLength += length
  }

  /// Ends the session once the client has what is there.
  mutating func complete() {
    append(payload: #"["close"]"#)
    isComplete = true
  }

  /// What a request's answer tells of the other direction.
  var report: String { "[\(backChannel == nil ? 0 : 1),\(lastSent),\(sentLength)]" }

  /// Forgets the arrays up to one that the client has.
  mutating func acknowledge(_ id: Int) {
    while let first = arrays.first, first.id <= id {
      heldLength -= first.length
      if first.id <= lastSent { sentLength -= first.length }
      arrays.removeFirst()
    }
  }

  /// Opens a back channel in place of the one that is open.
  ///
  /// Returns its number, and the array after which it begins. Something is there to be sent at once,
  /// by which clients know that nobody in between holds back what is sent.
  mutating func openBackChannel(after id: Int) -> (number: Int, after: Int) {
    let id = min(id, lastArray)
    acknowledge(id)
    if arrays.isEmpty { append(payload: #"["noop"]"#) }
    backChannels += 1
    backChannel = backChannels
    return (backChannels, id)
  }

  /// Whether a back channel is open.
  var hasBackChannel: Bool { backChannel != nil }

  /// Whether this back channel is the one that is open.
  func isOpen(_ number: Int) -> Bool { backChannel == number }

  /// Closes a back channel, unless another has taken its place.
  mutating func closeBackChannel(_ number: Int) {
    if backChannel == number { backChannel = nil }
  }

  /// Adds a sign of life if the back channel is still open and has nothing else to say.
  mutating func keepAlive(_ number: Int) {
    if backChannel == number, lastSent == lastArray { append(payload: #"["noop"]"#) }
  }

  /// The next chunk of a back channel that has sent up to `id`; nil while there is none.
  ///
  /// A chunk ends after about 64 Ki units, and holds one array at least.
  mutating func chunk(after id: Int) -> Chunk? {
    var body = "["
    var length = 1
    var last: Int?
    for array in arrays where array.id > id {
      if last != nil {
        guard length + array.length < Self.chunkLength else { break }
        body += ","
        length += 1
      }
      body += array.text
      length += array.length
      last = array.id
      if array.id > lastSent {
        lastSent = array.id
        sentLength += array.length
      }
    }
    guard let last else { return nil }
    return Chunk(
      text: Self.framed(body + "]", length: length + 1),
      last: last,
      isLastOfSession: isComplete && last == lastArray
    )
  }

  /// A chunk as it is sent.
  static func framed(_ body: String, length: Int? = nil) -> String {
    "\(length ?? body.utf16.count)\n\(body)"
  }
}
