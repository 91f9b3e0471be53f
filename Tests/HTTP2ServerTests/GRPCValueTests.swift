import NIOCore
import NIOHPACK
import StatusCodes
import Testing
import TestSupport

@testable import HTTP2Server

@Suite("gRPC stream state")
struct GRPCStreamStateTests {
  private func frame(_ bytes: [UInt8]) -> ByteBuffer {
    ByteBuffer(bytes: [0, 0, 0, 0, UInt8(bytes.count)] + bytes)
  }

  private func opened(one: Bool) -> GRPCStreamState {
    GRPCStreamState(
      takesOneRequest: one,
      decoder: GRPCMessageDecoder(limit: GRPCMessageLimit(bytesMax: 8), takesCompressed: false)
    )
  }

  @Test("A call with one request starts at the end of the stream, not before")
  func oneRequest() {
    var state = opened(one: true)
    state.received(frame([1, 2]))
    #expect(state.next() == nil)
    state.receivedEnd()

    #expect(state.next() == .call(GRPCMessage(bytes: ByteBuffer(bytes: [1, 2]))))
    #expect(state.next() == nil)
  }

  @Test("An empty message is a message")
  func emptyMessage() {
    var state = opened(one: true)
    state.received(frame([]))
    state.receivedEnd()

    #expect(state.next() == .call(GRPCMessage(bytes: ByteBuffer())))
  }

  @Test("A call with many requests gets each at once, and their end")
  func manyRequests() {
    var state = opened(one: false)
    var both = frame([1])
    both.writeImmutableBuffer(frame([2]))
    state.received(both)

    #expect(state.next() == .deliver(GRPCMessage(bytes: ByteBuffer(bytes: [1]))))
    #expect(state.next() == .deliver(GRPCMessage(bytes: ByteBuffer(bytes: [2]))))
    #expect(state.next() == nil)
    state.receivedEnd()
    #expect(state.next() == .finishRequests)
    #expect(state.next() == nil)
  }

  @Test("Two messages fail a call that takes one, and nothing after that counts")
  func twoOfOne() {
    var state = opened(one: true)
    state.received(frame([1]))
    #expect(state.next() == nil)
    state.received(frame([2]))

    guard case .fail(let error) = state.next() else {
      Issue.record("The second message was accepted.")
      return
    }
    #expect(error.statusCode == .unimplemented)
    state.received(frame([3]))
    state.receivedEnd()
    #expect(state.next() == nil)
  }

  @Test("An over-long message fails at its prefix, one of just the limit does not")
  func tooLong() {
    var over = opened(one: true)
    over.received(ByteBuffer(bytes: [0, 0, 0, 0, 9]))
    var atLimit = opened(one: true)
    atLimit.received(frame(Array(repeating: 7, count: 8)))
    atLimit.receivedEnd()

    #expect(
      over.next()
        == .fail(
          StatusError(.resourceExhausted, "Request payload size exceeds the limit: 8 bytes.")
        )
    )
    #expect(atLimit.next() == .call(GRPCMessage(bytes: ByteBuffer(repeating: 7, count: 8))))
  }

  @Test("The head precedes the first reply only, and nothing follows the end")
  func outbound() {
    var state = opened(one: true)
    state.receivedEnd()

    #expect(state.sending() == true)
    #expect(state.sending() == false)
    #expect(state.end() == false)
    #expect(state.end() == nil)
    #expect(state.sending() == nil)
  }

  @Test("A call that ends without a reply has trailers only")
  func trailersOnly() {
    var state = opened(one: true)

    #expect(state.end() == true)
  }

  @Test("A closed stream takes and gives nothing")
  func closed() {
    var state = opened(one: true)
    state.received(frame([1]))
    state.closed()
    state.receivedEnd()

    #expect(state.next() == nil)
    #expect(state.sending() == nil)
    #expect(state.end() == nil)
  }

  @Test("However a stream of messages is cut, the same messages come out")
  func anyCut() {
    var random = SeededGenerator.forTest()
    for _ in 0..<200 {
      let messages = (0..<Int.random(in: 0...6, using: &random)).map { _ in
        (0..<Int.random(in: 0...8, using: &random)).map { _ in
          UInt8.random(in: 0...9, using: &random)
        }
      }
      var rest = Array(messages.flatMap { Array(frame($0).readableBytesView) })[...]
      var state = opened(one: false)
      var delivered: [[UInt8]] = []
      while !rest.isEmpty {
        let size = Int.random(in: 1...min(rest.count, 12), using: &random)
        state.received(ByteBuffer(bytes: rest.prefix(size)))
        rest = rest.dropFirst(size)
        while case .deliver(let message)? = state.next() {
          delivered.append(Array(message.bytes.readableBytesView))
        }
      }
      state.receivedEnd()

      #expect(state.next() == .finishRequests)
      #expect(delivered == messages)
    }
  }
}

@Suite("gRPC headers")
struct GRPCHeadersTests {
  @Test(
    "Timeouts have up to eight digits and a unit",
    arguments: [
      ("1H", .seconds(3600)), ("2M", .seconds(120)), ("3S", .seconds(3)), ("4m", .milliseconds(4)),
      ("5u", .microseconds(5)), ("6n", .nanoseconds(6)), ("0n", .zero),
      ("99999999H", .seconds(99_999_999 * 3600)), ("", nil), ("S", nil), ("1", nil), ("1s", nil),
      ("-1S", nil), ("1.5S", nil), ("123456789S", nil), ("１S", nil),
    ] as [(String, Duration?)]
  )
  func timeouts(text: String, timeout: Duration?) {
    #expect(GRPCRequestHead.timeout(text) == timeout)
  }

  @Test("Status messages keep printable ASCII and escape the rest")
  func percentEncoding() {
    #expect(GRPCTrailers.percentEncoded("a b~%\u{7F}\u{1F600}") == "a b~%25%7F%F0%9F%98%80")
  }

  @Test("A message that clients would refuse for its length is cut between characters")
  func longMessage() {
    let encoded = GRPCTrailers.percentEncoded(String(repeating: "é", count: 10_000))

    #expect(encoded.utf8.count >= 6 * 1024)
    #expect(encoded.utf8.count < 8 * 1024 - 512)
    #expect(encoded.hasSuffix("%C3%A9"))
  }

  private static let head: HPACKHeaders = [
    ":method": "POST", ":scheme": "http", ":path": "/a/b", "te": "trailers",
    "content-type": "application/grpc",
  ]

  private func request(_ changes: HPACKHeaders) throws -> GRPCRequestHead {
    var headers = Self.head
    for (name, value, _) in changes {
      headers.remove(name: name)
      if !value.isEmpty { headers.add(name: name, value: value) }
    }
    return try GRPCRequestHead(try HTTP2RequestHead(headers.pseudoFirst))
  }

  @Test("Only POST is a call")
  func method() {
    #expect(throws: GRPCRequestHead.RefusalError.http(405)) { try request([":method": "GET"]) }
  }

  @Test("A call without te is refused with a status")
  func missingTe() {
    #expect(
      throws: GRPCRequestHead.RefusalError.status(
        .invalidArgument("The header te: trailers is missing.")
      )
    ) {
      try request(["te": ""])
    }
  }

  @Test("Replies are compressed only for a client that compresses and says it reads gzip")
  func compression() throws {
    let both = try request(["grpc-encoding": "gzip", "grpc-accept-encoding": "identity, gzip"])
    let sends = try request(["grpc-encoding": "gzip"])
    let reads = try request(["grpc-accept-encoding": "gzip"])

    #expect(both.isCompressed && both.acceptsCompressed)
    #expect(sends.isCompressed && !sends.acceptsCompressed)
    #expect(!reads.isCompressed && !reads.acceptsCompressed)
  }

  /// Heads that are malformed by RFC 9113, sections 8.2 and 8.3.
  private static let malformed: [HPACKHeaders] = [
    [":scheme": "http", ":path": "/"],
    [":method": "GET", ":path": "/"],
    [":method": "GET", ":scheme": "http"],
    [":method": "GET", ":method": "GET", ":scheme": "http", ":path": "/"],
    [":method": "GET", ":scheme": "http", ":path": "/", ":status": "200"],
    [":method": "GET", ":scheme": "http", "a": "b", ":path": "/"],
    [":method": "GET", ":scheme": "http", ":path": "/", "connection": "close"],
    [":method": "GET", ":scheme": "http", ":path": "/", "te": "gzip"],
    [":method": "GET", ":scheme": "http", ":path": "/", "Upper": "case"],
    [":method": "GET", ":scheme": "http", ":path": "/", "a": "b\r\nc: d"],
  ]

  @Test("A malformed head is none", arguments: malformed)
  func malformedHead(headers: HPACKHeaders) {
    #expect(throws: HTTP2RequestHead.MalformedError.self) { try HTTP2RequestHead(headers) }
  }
}

extension HPACKHeaders {
  /// These fields with the pseudo-headers first, as HTTP/2 requires.
  fileprivate var pseudoFirst: HPACKHeaders {
    let all = map { ($0.name, $0.value) }
    return HPACKHeaders(all.filter { $0.0.hasPrefix(":") } + all.filter { !$0.0.hasPrefix(":") })
  }
}

@Suite("gRPC send queue")
struct GRPCSendQueueTests {
  @Test("Only the first frame since the last take asks for a wake-up")
  func wakesOnce() throws {
    var queue = GRPCSendQueue(bytesMax: 100)

    #expect(try queue.append(ByteBuffer(string: "a")))
    #expect(try !queue.append(ByteBuffer(string: "b")))
    #expect(queue.take() == [ByteBuffer(string: "a"), ByteBuffer(string: "b")])
    #expect(try queue.append(ByteBuffer(string: "c")))
  }

  @Test("Senders wait while the queue is full or the stream is not writable")
  func waits() throws {
    var queue = GRPCSendQueue(bytesMax: 3)
    _ = try queue.append(ByteBuffer(string: "ab"))
    #expect(!queue.mustWait)
    _ = try queue.append(ByteBuffer(string: "c"))
    #expect(queue.mustWait)
    _ = queue.take()
    #expect(!queue.mustWait)
    _ = queue.setWritable(false)
    #expect(queue.mustWait)
    _ = queue.setWritable(true)
    #expect(!queue.mustWait)
  }

  @Test("A closed queue holds nothing and refuses more")
  func closes() throws {
    var queue = GRPCSendQueue(bytesMax: 3)
    _ = try queue.append(ByteBuffer(string: "abc"))
    _ = queue.close()

    #expect(!queue.mustWait)
    #expect(queue.take() == [])
    #expect(throws: CancellationError.self) { try queue.append(ByteBuffer(string: "d")) }
  }
}
