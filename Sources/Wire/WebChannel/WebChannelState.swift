import DequeModule

/// The state of the messages in both directions of one session, without tasks and clocks.
///
/// The client's messages are numbered from 0. Each is passed on once and in order, however often
/// and in whatever order requests bring them. The server's arrays are numbered from 1, after the
/// handshake with number 0, and are kept until the client acknowledges them.
struct WebChannelState {
  /// An array for the client.
  private struct Outgoing {
    var id: Int
    /// The array as sent: `[id,payload]`.
    var text: String
    /// The length in UTF-16 code units, the protocol's unit.
    var length: Int
  }

  /// A chunk of a back channel.
  struct Chunk: Equatable {
    /// The length, a line feed, and the arrays.
    var text: String
    /// The id of the last array in the chunk.
    var last: Int
    var isLastOfSession: Bool
  }

  /// The maximum distance from a missing message at which later messages are kept.
  ///
  /// `aheadBytesMax` limits their bytes.
  private static let aheadMax = 1000
  private static let aheadBytesMax = 4 << 20
  /// The length beyond which no array is added to a chunk, so that a client can begin to read.
  private static let chunkLength = 64 << 10

  private var nextMessage = 0
  private var early: [Int: String] = [:]
  private(set) var earlyBytes = 0
  private var messages = Deque<String>()
  /// The number of bytes of messages that wait for the handler.
  private(set) var waitingBytes = 0

  private var arrays = Deque<Outgoing>()
  private var lastArray = 0
  /// The length of all arrays that the client has not acknowledged.
  private(set) var heldLength = 0
  /// The id of the last array that a back channel has sent.
  ///
  /// `sentLength` is the length of the sent arrays that the client has not acknowledged.
  private var lastSent = 0
  private var sentLength = 0
  /// True if no further array follows.
  private(set) var isComplete = false
  /// True while the handler waits for an acknowledgement by the client.
  var isHeldUp = false

  /// The number of the open back channel; later ones have greater numbers.
  private var backChannel: Int?
  private var backChannels = 0

  // MARK: From the client

  /// Accepts messages, of which the first has number `offset`; known messages are ignored.
  ///
  /// Returns false and accepts no message if they are further ahead than any client sends.
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

  /// Removes and returns the next message; nil if there is none yet.
  mutating func popMessage() -> String? {
    guard let text = messages.popFirst() else { return nil }
    waitingBytes -= text.utf8.count
    return text
  }

  // MARK: To the client

  /// Appends an array whose payload is JSON text.
  mutating func append(payload: String) {
    guard !isComplete else { return }
    lastArray += 1
    let text = "[\(lastArray),\(payload)]"
    let length = text.utf16.count
    arrays.append(Outgoing(id: lastArray, text: text, length: length))
    heldLength += length
  }

  /// Appends the message that ends the session after everything before it.
  mutating func complete() {
    append(payload: #"["close"]"#)
    isComplete = true
  }

  /// The state of the other direction, as reported in the response to a request.
  var report: String { "[\(backChannel == nil ? 0 : 1),\(lastSent),\(sentLength)]" }

  /// Removes the arrays up to an id that the client has acknowledged.
  mutating func acknowledge(_ id: Int) {
    while let first = arrays.first, first.id <= id {
      heldLength -= first.length
      if first.id <= lastSent { sentLength -= first.length }
      arrays.removeFirst()
    }
  }

  /// Opens a back channel, which replaces an open one.
  ///
  /// Returns its number and the array after which it begins. There is always an array to send at
  /// once; it shows the client that no intermediary holds back output.
  mutating func openBackChannel(after id: Int) -> (number: Int, after: Int) {
    let id = min(id, lastArray)
    acknowledge(id)
    if arrays.isEmpty { append(payload: #"["noop"]"#) }
    backChannels += 1
    backChannel = backChannels
    return (backChannels, id)
  }

  var hasBackChannel: Bool { backChannel != nil }

  /// Returns true if this back channel is still the open one.
  func isOpen(_ number: Int) -> Bool { backChannel == number }

  /// Closes a back channel unless it has been replaced.
  mutating func closeBackChannel(_ number: Int) {
    if backChannel == number { backChannel = nil }
  }

  /// Adds a keep-alive array if the back channel is still open and everything else has been sent.
  mutating func keepAlive(_ number: Int) {
    if backChannel == number, lastSent == lastArray { append(payload: #"["noop"]"#) }
  }

  /// Returns the next chunk of a back channel that has sent up to `id`; nil if there is none.
  ///
  /// A chunk ends after about 64 Ki code units but contains at least one array.
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

  /// Returns a chunk as it is sent: its length, a line feed and the body.
  static func framed(_ body: String, length: Int? = nil) -> String {
    "\(length ?? body.utf16.count)\n\(body)"
  }
}
