import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHPACK
import ServiceLifecycle
import SwiftProtobuf
import Testing
import TestSupport

@testable import HTTP2Server

@Suite("HTTP/2 under abuse", .timeLimit(.minutes(5)))
struct HTTP2AbuseTests {
  // MARK: Random input

  /// A valid client session: calls with data, resets, and pings.
  private static func session(using random: inout SeededGenerator) -> ByteBuffer {
    var bytes = ByteBuffer()
    bytes.writeSettings([HTTP2Setting(id: 4, value: UInt32.random(in: 0...100, using: &random))])
    for number in 0..<UInt32.random(in: 1...6, using: &random) {
      let stream = number * 2 + 1
      var head = ByteBuffer.callHead("/test.Echo/Chat", [("x-number", "\(number)")])
      // A field that is added to the dynamic table, and a reference to it.
      head.writeBytes([0x40, 1, 0x61, 1, 0x62, 0xBE])
      let isSplit = Bool.random(using: &random)
      if isSplit, let first = head.readSlice(length: 5) {
        bytes.writeFrameHeader(length: 5, type: HTTP2FrameType.headers, stream: stream)
        bytes.writeImmutableBuffer(first)
        bytes.writeFrameHeader(
          length: head.readableBytes,
          type: HTTP2FrameType.continuation,
          flags: HTTP2Flag.endHeaders,
          stream: stream
        )
        bytes.writeImmutableBuffer(head)
      } else {
        bytes.writeHeaders(stream: stream, block: head, end: false)
      }
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let part = ByteBuffer(repeating: 0, count: Int.random(in: 0...50, using: &random))
        bytes.writeData(stream: stream, bytes: part)
      }
      bytes.writeWindowUpdate(stream: stream, increment: 30)
      bytes.writePing(UInt64(number), acknowledgement: Bool.random(using: &random))
      if Bool.random(using: &random) { bytes.writeReset(stream: stream, code: .cancel) }
    }
    return bytes
  }

  /// A session with some bytes changed, removed, duplicated or inserted.
  private static func mutated(_ session: ByteBuffer, using random: inout SeededGenerator)
    -> [UInt8]
  {
    var bytes = Array(session.readableBytesView)
    for _ in 0..<Int.random(in: 0...6, using: &random) {
      let start = Int.random(in: 0..<bytes.count, using: &random)
      let end = min(bytes.count, start + Int.random(in: 1...20, using: &random))
      switch Int.random(in: 0...3, using: &random) {
      case 0: bytes[start] = UInt8.random(in: 0...255, using: &random)
      case 1 where bytes.count > end - start: bytes.removeSubrange(start..<end)
      case 2: bytes.insert(contentsOf: bytes[start..<end], at: start)
      default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: start)
      }
    }
    return bytes
  }

  @Test("A damaged session never breaks the handler: it answers in frames, and ends with GOAWAY")
  func damaged() throws {
    var random = SeededGenerator.forTest()
    for round in 0..<2000 {
      let peer = try Peer()
      let bytes = Self.mutated(Self.session(using: &random), using: &random)
      var rest = bytes[...]
      while !rest.isEmpty {
        let part = rest.prefix(Int.random(in: 1...200, using: &random))
        rest = rest.dropFirst(part.count)
        try peer.send { $0.writeBytes(part) }
        for call in peer.calls where Bool.random(using: &random) {
          call.stream.write(ByteBuffer(repeating: 1, count: 40))
          if Bool.random(using: &random) { call.stream.end(.trailers(GRPCTrailers.ok)) }
          call.stream.flush()
        }
      }
      // These zeros first complete any unfinished frame. The rest are DATA frames on stream 0.
      try peer.send { $0.writeRepeatingByte(0, count: 2 * HTTP2Size.frameMax) }
      let frames = try peer.take()
      peer.loop.advanceTime(by: .seconds(1))

      #expect(frames.filter { $0.type == HTTP2FrameType.goAway }.count == 1, "round \(round)")
      #expect(!peer.channel.isActive, "round \(round)")
      #expect(peer.calls.filter { !$0.isClosed }.isEmpty, "round \(round)")
    }
  }

  @Test("Damaged sessions on sockets leave the server as it was")
  func damagedOnSockets() async throws {
    var random = SeededGenerator.forTest()
    let sessions = (0..<100).map { _ in
      Self.mutated(Self.session(using: &random), using: &random)
    }
    try await withServer { service in
      service.bidirectional("Chat") {
        (requests: GRPCRequestStream<Text>, replies: GRPCResponseStream<Text>, _) in
        for try await request in requests { try await replies.send(request) }
      }
      service.unary("Say") { (request: Text, _) in request }
    } _: { address, _ in
      for session in sessions {
        try await RawHTTP2.with(address) { client in
          try await client.send { buffer in
            buffer.writeString(RawHTTP2.preface)
            buffer.writeBytes(session)
            buffer.writeRepeatingByte(0, count: 2 * HTTP2Size.frameMax)
          }
          while let frame = try await client.next(), frame.type != HTTP2FrameType.goAway {}
        }
      }
      try await HTTP2Client.with(address) { client in
        let texts = try await client.call("/test.Echo/Say", "after").texts
        #expect(texts == ["after"])
      }
    }
  }

  // MARK: Memory

  private struct Weak {
    weak var stream: HTTP2Stream?
  }

  @Test("10 000 streams and 2 000 cancels leave nothing on their connection")
  func nothingIsKept() throws {
    let peer = try Peer.connected()
    var streams: [Weak] = []
    for number in 0..<12_000 as Range<UInt32> {
      let id = number * 2 + 1
      let isCancelled = number % 6 == 0
      try peer.open(id, end: !isCancelled)
      let stream = try #require(peer.calls.last?.stream)
      streams.append(Weak(stream: stream))
      stream.write(ByteBuffer(string: "x"))
      if isCancelled {
        try peer.send { $0.writeReset(stream: id, code: .cancel) }
      } else {
        stream.end(.trailers(GRPCTrailers.ok))
        stream.flush()
      }
      try peer.send { $0.writeWindowUpdate(stream: 0, increment: 1) }
      _ = try peer.take()
      peer.forgetCalls()
    }

    #expect(peer.channel.isActive)
    #expect(streams.filter { $0.stream != nil }.isEmpty)
  }

  @Test("Cancelled calls that waited for the connection's window are not kept")
  func waitingIsLeft() throws {
    let peer = try Peer.connected(settings: [HTTP2Setting(id: 4, value: 1_000_000)])
    var streams: [Weak] = []
    for id in stride(from: 1, to: 41, by: 2) as StrideTo<UInt32> {
      try peer.open(id)
      let stream = try #require(peer.calls.last?.stream)
      streams.append(Weak(stream: stream))
      stream.write(ByteBuffer(repeating: 1, count: 70_000))
      stream.flush()
      try peer.send { $0.writeReset(stream: id, code: .cancel) }
      peer.forgetCalls()
    }

    #expect(streams.filter { $0.stream != nil }.isEmpty)
  }

  @Test("A large reply does not keep another from the connection's window")
  func turns() throws {
    let peer = try Peer.connected(settings: [HTTP2Setting(id: 4, value: 10_000_000)])
    for id in [1, 3] as [UInt32] {
      try peer.open(id)
      peer.calls.last?.stream.write(ByteBuffer(repeating: 1, count: 1_000_000))
      peer.calls.last?.stream.flush()
    }
    _ = try peer.take()
    for _ in 0..<4 { try peer.send { $0.writeWindowUpdate(stream: 0, increment: 1000) } }

    let frames = try peer.take()
    #expect(frames.map(\.stream) == [1, 3, 1, 3])
  }

  @Test("Bytes after the end of a connection are not kept")
  func afterTheEnd() throws {
    let peer = try Peer.connected()
    try peer.send { $0.writeRepeatingByte(0, count: HTTP2Size.frameHeader) }
    let end = try peer.take()
    try peer.send { $0.writePing(1, acknowledgement: false) }
    let more = try peer.take()

    #expect(end.map(\.type) == [HTTP2FrameType.goAway])
    #expect(more.isEmpty)
  }

  @Test("A client that does not acknowledge the first GOAWAY gets the second")
  func unacknowledged() throws {
    let peer = try Peer.connected()
    peer.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    _ = try peer.take()
    peer.loop.advanceTime(by: .seconds(1))
    let named = try peer.take()
    peer.loop.advanceTime(by: .seconds(1))

    #expect(named.map(\.type) == [HTTP2FrameType.goAway])
    #expect(!peer.channel.isActive)
  }

  /// A token that reports its deinitialization.
  private final class Token: Sendable {
    let gone: AsyncStream<Void>.Continuation

    init(_ gone: AsyncStream<Void>.Continuation) {
      self.gone = gone
    }

    deinit {
      gone.finish()
    }
  }

  @Test("A plain request's call is forgotten with its server", .timeLimit(.minutes(5)))
  func plainCallsAreForgotten() async throws {
    let (gone, continuation) = AsyncStream<Void>.makeStream()
    func serve() async throws {
      let token = Token(continuation)
      let responder: HTTP2Responder = { _, _ in
        withExtendedLifetime(token) { Response(status: .ok) }
      }
      let body: @Sendable (ServerAddress) async throws -> Void = { address in
        try await HTTP2Client.with(address) { client in
          let reply = try await client.call("/v1", headers: ["content-type": "text/plain"], "x")
          #expect(reply.headers.first?.first(name: ":status") == "200")
        }
      }
      try await withServer({ _ in }, { address, _ in try await body(address) }, rest: responder)
    }
    try await serve()

    for await _ in gone {}
  }

  // MARK: Limits

  @Test("A head beyond the limit is RESOURCE_EXHAUSTED, and the connection goes on")
  func longHead() async throws {
    let bounds = GRPCServer.Configuration(headerBytesMax: 16 * 1024)
    try await withServer(configuration: bounds) { service in
      service.unary("Say") { (request: Text, _) in request }
    } _: { address, _ in
      try await RawHTTP2.with(address) { client in
        let long = ByteBuffer.callHead(
          "/test.Echo/Say",
          [("x-long", String(repeating: "x", count: 20_000))]
        )
        try await client.send { buffer in
          buffer.writeString(RawHTTP2.preface)
          buffer.writeSettings([])
          buffer.writeHeaders(stream: 1, block: long, end: true)
          buffer.writeHeaders(stream: 3, block: .callHead("/test.Echo/Say"), end: false)
          let message = try framed("hi")
          buffer.writeData(stream: 3, bytes: message)
          buffer.writeFrameHeader(
            length: 0,
            type: HTTP2FrameType.data,
            flags: HTTP2Flag.endStream,
            stream: 3
          )
        }
        var trailers: [UInt32: String] = [:]
        while trailers.count < 2, let frame = try await client.next() {
          guard frame.type == HTTP2FrameType.headers, frame.flags & HTTP2Flag.endStream != 0 else {
            continue
          }
          trailers[frame.stream] = String(buffer: frame.payload)
        }
        // The server's fields are literals, so the length and the digit are readable in the block.
        #expect(trailers[1]?.contains("grpc-status\u{1}8") == true)
        #expect(trailers[3]?.contains("grpc-status\u{1}0") == true)
      }
    }
  }

  @Test("A client that sends faster than the handler reads is held by its stream's window")
  func uploadIsHeld() async throws {
    let (release, signal) = AsyncStream<Void>.makeStream()
    let window = 128 * 1024
    try await withServer(configuration: .init(streamWindowBytes: window)) { service in
      service.bidirectional("Sip") {
        (requests: GRPCRequestStream<Text>, replies: GRPCResponseStream<Text>, _) in
        for await _ in release { break }
        var count = 0
        for try await _ in requests { count += 1 }
        try await replies.send(Text("\(count)"))
      }
    } _: { address, _ in
      try await RawHTTP2.with(address) { client in
        try await client.send { buffer in
          buffer.writeString(RawHTTP2.preface)
          buffer.writeSettings([])
          buffer.writeHeaders(stream: 1, block: .callHead("/test.Echo/Sip"), end: false)
        }
        _ = try await creditUntilAcknowledged(&client)
        let message = try framed(String(repeating: "x", count: 16_000))
        let countMax = 200
        var (credit, sent, held) = (window, 0, 0)
        while sent < countMax {
          if credit >= message.readableBytes {
            try await client.send { $0.writeData(stream: 1, bytes: message) }
            credit -= message.readableBytes
            sent += 1
            continue
          }
          if held > 0 {
            guard let frame = try await client.next() else { break }
            credit += frame.increment
          } else {
            try await client.send { $0.writeSettings([]) }
            let more = try await creditUntilAcknowledged(&client)
            credit += more
            if more == 0 {
              held = sent
              signal.yield()
            }
          }
        }
        try await client.send { buffer in
          buffer.writeFrameHeader(
            length: 0,
            type: HTTP2FrameType.data,
            flags: HTTP2Flag.endStream,
            stream: 1
          )
        }
        var reply = ByteBuffer()
        while let frame = try await client.next(), frame.flags & 1 == 0 || frame.stream != 1 {
          if frame.type == HTTP2FrameType.data { reply.writeImmutableBuffer(frame.payload) }
        }

        // At most the handler's queue and one window.
        #expect(held > 0)
        #expect(held * message.readableBytes <= window + 64 * 1024 + message.readableBytes)
        #expect(String(buffer: reply).hasSuffix("\(countMax)"))
      }
    }
  }

  /// Sums the window credit that the server grants before it acknowledges the last settings.
  private func creditUntilAcknowledged(_ client: inout RawHTTP2) async throws -> Int {
    var credit = 0
    while let frame = try await client.next() {
      credit += frame.increment
      if frame.type == HTTP2FrameType.settings, frame.flags == HTTP2Flag.acknowledgement { break }
    }
    return credit
  }
}

extension Peer.Frame {
  /// The amount by which the frame enlarges the window of stream 1.
  fileprivate var increment: Int {
    guard type == HTTP2FrameType.windowUpdate, stream == 1 else { return 0 }
    return Int(payload.getInteger(at: 0, as: UInt32.self) ?? 0)
  }
}
