import HTTPSupport
import Logging
import NIOCore
import NIOEmbedded
import NIOHPACK
import StatusCodes
import Testing
import TestSupport

@testable import HTTP2Server

@Suite("HTTP/2 connection", .timeLimit(.minutes(5)))
struct HTTP2ConnectionTests {
  @Test("It begins with settings and a wider window, and acknowledges the client's")
  func handshake() throws {
    let peer = try Peer()
    let first = try peer.take()
    try peer.send { $0.writeSettings([]) }

    #expect(first.map(\.type) == [HTTP2FrameType.settings, HTTP2FrameType.windowUpdate])
    let acknowledged = try peer.take()
    #expect(acknowledged.map(\.type) == [HTTP2FrameType.settings])
    #expect(acknowledged.first?.flags == HTTP2Flag.acknowledgement)
  }

  /// Frames that a connected client may not send, and the expected error codes.
  private static let offences: [(String, [UInt8], HTTP2ErrorCode)] = [
    ("too long a frame", [0, 0x40, 1, 0, 0, 0, 0, 0, 1], .frameSizeError),
    ("DATA without a stream", [0, 0, 0, 0, 0, 0, 0, 0, 0], .protocolError),
    ("DATA on a stream that is not open", [0, 0, 0, 0, 0, 0, 0, 0, 9], .protocolError),
    ("HEADERS on an even stream", [0, 0, 1, 1, 4, 0, 0, 0, 2, 0x82], .protocolError),
    ("padding longer than its frame", [0, 0, 1, 0, 8, 0, 0, 0, 1, 9], .protocolError),
    ("a short PING", [0, 0, 1, 6, 0, 0, 0, 0, 0, 0], .frameSizeError),
    ("a PING on a stream", [0, 0, 8, 6, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], .protocolError),
    ("SETTINGS of five bytes", [0, 0, 5, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0], .frameSizeError),
    ("SETTINGS on a stream", [0, 0, 0, 4, 0, 0, 0, 0, 1], .protocolError),
    (
      "a window beyond 2^31", [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x80, 0, 0, 0], .flowControlError
    ),
    ("a push", [0, 0, 4, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2], .protocolError),
    ("an update by nothing", [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0], .protocolError),
    (
      "an update past 2^31", [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF], .flowControlError
    ),
    ("a CONTINUATION of nothing", [0, 0, 0, 9, 4, 0, 0, 0, 1], .protocolError),
    (
      "a frame inside a header block",
      [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82] + [0, 0, 8, 6, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, 0],
      .protocolError
    ),
    ("a field that no table has", [0, 0, 2, 1, 4, 0, 0, 0, 1, 0xFF, 0x70], .compressionError),
    ("a reset of no stream", [0, 0, 4, 3, 0, 0, 0, 0, 0, 0, 0, 0, 8], .protocolError),
  ]

  @Test("An offence ends the connection with its code", arguments: offences)
  func offence(what: String, bytes: [UInt8], code: HTTP2ErrorCode) throws {
    let peer = try Peer.connected()
    try peer.send { $0.writeBytes(bytes) }

    let goAway = try #require(try peer.take().last)
    #expect(goAway.type == HTTP2FrameType.goAway, "\(what)")
    #expect(goAway.payload.getInteger(at: 4, as: UInt32.self) == code.rawValue, "\(what)")
    peer.loop.advanceTime(by: .seconds(1))
    #expect(!peer.channel.isActive, "\(what)")
  }

  @Test("Bytes that are no HTTP/2 end the connection, whatever they are")
  func noise() throws {
    var random = SeededGenerator.forTest()
    for _ in 0..<300 {
      let peer = try Peer.connected()
      for _ in 0..<Int.random(in: 1...20, using: &random) {
        let length = Int.random(in: 0...40, using: &random)
        try peer.send { buffer in
          buffer.writeFrameHeader(
            length: length,
            type: UInt8.random(in: 0...10, using: &random),
            flags: UInt8.random(in: 0...0x2F, using: &random),
            stream: UInt32.random(in: 0...7, using: &random)
          )
          for _ in 0..<length { buffer.writeInteger(UInt8.random(in: 0...255, using: &random)) }
        }
      }
      for frame in try peer.take() {
        #expect(frame.type <= HTTP2FrameType.continuation)
      }
      peer.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
      peer.loop.run()
      let open = peer.calls.filter { !$0.isClosed }
      #expect(open.isEmpty)
    }
  }

  @Test("A malformed head resets its stream only")
  func malformedHead() throws {
    let peer = try Peer.connected()
    try peer.send { $0.writeHeaders(stream: 1, block: ByteBuffer(bytes: [0x82]), end: true) }
    let reset = try peer.take()
    try peer.open(3)

    #expect(reset.map(\.type) == [HTTP2FrameType.reset])
    #expect(peer.calls.count == 1)
  }

  @Test("Past the number of streams a new one is refused so that its client retries")
  func streamsMax() throws {
    let peer = try Peer.connected(GRPCServer.Configuration(streamsMax: 2))
    for stream in [1, 3, 5] as [UInt32] { try peer.open(stream) }
    let refused = try peer.take()
    try peer.send { $0.writeReset(stream: 1, code: .cancel) }
    try peer.open(7)

    #expect(refused.map(\.stream) == [5])
    #expect(refused.first?.payload == ByteBuffer(integer: HTTP2ErrorCode.refusedStream.rawValue))
    let more = try peer.take()
    #expect(peer.calls.count == 3)
    #expect(more.isEmpty)
  }

  @Test("While too many handlers of reset calls still run, new calls are refused")
  func runningCallsMax() throws {
    let peer = try Peer.connected(GRPCServer.Configuration(runningCallsMax: 2))
    peer.connection.runningCalls = 2
    try peer.open(1)
    peer.connection.runningCalls = 1
    try peer.open(3)

    let refused = try peer.take()
    #expect(refused.map(\.stream) == [1])
    #expect(peer.calls.count == 1)
  }

  @Test("Frames for a call that was just reset are no offence")
  func lateFrames() throws {
    let peer = try Peer.connected()
    try peer.open(1)
    peer.calls.first?.stream.reset(.cancel)
    try peer.send { buffer in
      buffer.writeData(stream: 1, bytes: ByteBuffer(string: "late"))
      buffer.writeWindowUpdate(stream: 1, increment: 10)
      buffer.writeReset(stream: 1, code: .cancel)
    }
    try peer.open(3)

    let frames = try peer.take()
    #expect(frames.map(\.type) == [HTTP2FrameType.reset])
    #expect(peer.channel.isActive)
    #expect(peer.calls.count == 2)
  }

  // MARK: Flow control

  @Test("A reply stops at the client's windows and goes on with them")
  func sendWindows() throws {
    let peer = try Peer.connected(settings: [HTTP2Setting(id: 4, value: 10)])
    try peer.open(1)
    let stream = try #require(peer.calls.first?.stream)
    stream.writeHead(GRPCTrailers.head)
    stream.write(ByteBuffer(string: "0123456789abcdefghij"))
    stream.end(.trailers(GRPCTrailers.ok))
    stream.flush()
    let first = try peer.take()
    try peer.send { $0.writeWindowUpdate(stream: 1, increment: 4) }
    let second = try peer.take()
    try peer.send { $0.writeSettings([HTTP2Setting(id: 4, value: 100)]) }
    let rest = try peer.take()

    #expect(first.map(\.type) == [HTTP2FrameType.headers, HTTP2FrameType.data])
    #expect(first.last.map { String(buffer: $0.payload) } == "0123456789")
    #expect(second.map { String(buffer: $0.payload) } == ["abcd"])
    #expect(rest.contains { String(buffer: $0.payload) == "efghij" })
    #expect(rest.contains { $0.type == HTTP2FrameType.headers && $0.flags & 1 == 1 })
  }

  @Test("Data that a larger window lets through comes after the settings' acknowledgment")
  func acknowledgedWindows() throws {
    let peer = try Peer.connected(settings: [HTTP2Setting(id: 4, value: 10)])
    try peer.open(1)
    let stream = try #require(peer.calls.first?.stream)
    stream.write(ByteBuffer(repeating: 7, count: 30))
    stream.flush()
    _ = try peer.take()
    try peer.send {
      $0.writeSettings([HTTP2Setting(id: 4, value: 1000), HTTP2Setting(id: 4, value: 15)])
    }
    let larger = try peer.take()
    try peer.send { $0.writeSettings([HTTP2Setting(id: 4, value: 5)]) }
    let smaller = try peer.take()
    try peer.send { $0.writeWindowUpdate(stream: 1, increment: 20) }
    let rest = try peer.take()

    // Of two values in one frame only the last one counts.
    #expect(larger.map(\.type) == [HTTP2FrameType.settings, HTTP2FrameType.data])
    #expect(larger.last?.payload.readableBytes == 5)
    #expect(smaller.map(\.type) == [HTTP2FrameType.settings])
    #expect(rest.map(\.payload.readableBytes) == [10])
  }

  @Test("The connection's window is shared, and streams that wait for it go on in turn")
  func connectionWindow() throws {
    let peer = try Peer.connected(settings: [HTTP2Setting(id: 4, value: 1_000_000)])
    try peer.open(1)
    try peer.open(3)
    for call in peer.calls {
      call.stream.write(ByteBuffer(repeating: 7, count: 50_000))
      call.stream.flush()
    }
    let first = try peer.take()
    try peer.send { $0.writeWindowUpdate(stream: 0, increment: 100_000) }
    let second = try peer.take()

    #expect(first.map(\.payload.readableBytes).reduce(0, +) == 65_535)
    #expect((first + second).map(\.payload.readableBytes).reduce(0, +) == 100_000)
    let stuck = peer.calls.filter { $0.stream.queuedBytes > 0 }
    #expect(stuck.isEmpty)
  }

  @Test("A client may not send more than the handler's window, and gets it back as it reads")
  func receiveWindow() throws {
    let peer = try Peer.connected(GRPCServer.Configuration(streamWindowBytes: 1000))
    try peer.open(1)
    let call = try #require(peer.calls.first)
    call.wantsMore = false
    try peer.send { $0.writeData(stream: 1, bytes: ByteBuffer(repeating: 1, count: 1000)) }
    let early = try peer.take()
    #expect(early.isEmpty)
    call.wantsMore = true
    call.stream.resumeReading()
    let update = try peer.take()
    #expect(update.map(\.type) == [HTTP2FrameType.windowUpdate])
    #expect(update.first?.payload == ByteBuffer(integer: 1000 as UInt32))

    call.wantsMore = false
    try peer.send { $0.writeData(stream: 1, bytes: ByteBuffer(repeating: 1, count: 1001)) }
    #expect(call.isClosed)
    #expect(call.received == 1000)
    let reset = try peer.take().first
    #expect(reset?.payload == ByteBuffer(integer: HTTP2ErrorCode.flowControlError.rawValue))
  }

  @Test("What all calls hold is bounded: the one that asks for more is refused")
  func heldBytes() throws {
    let peer = try Peer.connected(GRPCServer.Configuration(heldBytesMax: 100))
    for stream in [1, 3] as [UInt32] {
      try peer.open(stream)
      peer.calls.last?.holds = true
      try peer.send { $0.writeData(stream: stream, bytes: ByteBuffer(repeating: 1, count: 60)) }
    }

    #expect(peer.calls.map(\.refusals) == [0, 1])
  }

  @Test("What all connections hold is bounded together: a call that asks for more is refused")
  func heldTogether() throws {
    let budget = TransferBudget(
      bytesMax: 50_000,
      // The stall limit is long, so that a slow test does not end a call.
      stallMin: .seconds(3600),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
    let peers = try [0, 1, 2].map { _ in try Peer.connected(budget: budget) }
    for peer in peers {
      try peer.open(1)
      peer.calls.last?.holds = true
      for _ in 0..<2 {
        try peer.send { $0.writeData(stream: 1, bytes: ByteBuffer(repeating: 1, count: 10_000)) }
      }
    }

    #expect(budget.heldBytes == 40_000)
    #expect(peers.map { $0.calls.last?.refusals } == [0, 0, 1])
    try peers[0].send { $0.writeReset(stream: 1, code: .cancel) }
    #expect(budget.heldBytes == 20_000)
  }

  @Test("A client that does not read is not read")
  func unwritable() throws {
    let peer = try Peer.connected()
    let reads = ReadCounter()
    try peer.channel.pipeline.syncOperations.addHandler(reads, position: .first)
    peer.channel.read()
    #expect(reads.count == 1)
    peer.channel.isWritable = false
    peer.channel.pipeline.fireChannelWritabilityChanged()
    peer.channel.read()
    #expect(reads.count == 1)
    peer.channel.isWritable = true
    peer.channel.pipeline.fireChannelWritabilityChanged()
    #expect(reads.count == 2)
  }

  private final class ReadCounter: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    var count = 0

    func read(context: ChannelHandlerContext) {
      count += 1
    }
  }

  // MARK: Floods

  @Test("2 000 cancelled calls leave the connection as it was")
  func resets() throws {
    let peer = try Peer.connected()
    for number in 0..<2000 as Range<UInt32> {
      try peer.open(number * 2 + 1)
      try peer.send { $0.writeReset(stream: number * 2 + 1, code: .cancel) }
    }
    try peer.open(9001)

    #expect(peer.calls.count == 2001)
    #expect(peer.calls.filter(\.isClosed).count == 2000)
    #expect(peer.channel.isActive)
  }

  @Test("Resets, control frames and short continuations without end end the connection")
  func floods() throws {
    let bounds = GRPCServer.Configuration(resetsMax: 10, controlFramesMax: 20)
    let resets = try Peer.connected(bounds)
    for number in 0..<11 as Range<UInt32> {
      try resets.open(number * 2 + 1)
      try resets.send { $0.writeReset(stream: number * 2 + 1, code: .cancel) }
    }
    let settings = try Peer.connected(bounds)
    for _ in 0..<21 { try settings.send { $0.writeSettings([]) } }
    let continuations = try Peer.connected(bounds)
    try continuations.send { buffer in
      buffer.writeFrameHeader(length: 0, type: HTTP2FrameType.headers, stream: 1)
      for _ in 0..<1000 {
        buffer.writeFrameHeader(length: 0, type: HTTP2FrameType.continuation, stream: 1)
      }
    }

    for peer in [resets, settings, continuations] {
      let last = try peer.take().last
      #expect(last?.type == HTTP2FrameType.goAway)
      #expect(
        last?.payload.getInteger(at: 4, as: UInt32.self) == HTTP2ErrorCode.enhanceYourCalm.rawValue
      )
    }
  }

  // MARK: Pings

  @Test("A PING is answered; the fourth in a row without a reply in between is too many")
  func pings() throws {
    let peer = try Peer.connected()
    for number in 1...3 as ClosedRange<UInt64> {
      try peer.send { $0.writePing(number, acknowledgement: false) }
      let answer = try peer.take()
      #expect(answer.first?.flags == HTTP2Flag.acknowledgement)
      #expect(answer.first?.payload == ByteBuffer(integer: number))
    }
    try peer.send { $0.writePing(4, acknowledgement: false) }
    let goAway = try #require(try peer.take().last)
    #expect(goAway.type == HTTP2FrameType.goAway)
    #expect(String(buffer: goAway.payload).hasSuffix("too_many_pings"))
  }

  @Test("PINGs that follow data are never too many")
  func bandwidthPings() throws {
    let peer = try Peer.connected()
    try peer.open(1)
    for number in 1...50 as ClosedRange<UInt64> {
      peer.calls.first?.stream.write(ByteBuffer(string: "x"))
      peer.calls.first?.stream.flush()
      try peer.send { $0.writePing(number, acknowledgement: false) }
    }

    let frames = try peer.take()
    #expect(frames.allSatisfy { $0.type != HTTP2FrameType.goAway })
  }

  @Test("A silent client is asked for a sign of life, and closed when it gives none")
  func keepAlive() throws {
    let bounds = GRPCServer.Configuration(
      keepAliveInterval: .seconds(30),
      keepAliveTimeMax: .seconds(5)
    )
    let peer = try Peer.connected(bounds)
    peer.loop.advanceTime(by: .seconds(30))
    peer.loop.advanceTime(by: .seconds(30))
    let ping = try #require(try peer.take().last)
    #expect(ping.type == HTTP2FrameType.ping)
    try peer.send { $0.writePing(0, acknowledgement: true) }
    peer.loop.advanceTime(by: .seconds(5))
    #expect(peer.channel.isActive)

    peer.loop.advanceTime(by: .seconds(30))
    let pings = try peer.take()
    #expect(pings.map(\.type) == [HTTP2FrameType.ping])
    peer.loop.advanceTime(by: .seconds(5))
    #expect(!peer.channel.isActive)
  }

  // MARK: Shutdown

  @Test("Told to end, it announces, answers what comes until the client knows, then names the last")
  func drain() throws {
    let peer = try Peer.connected()
    try peer.open(1)
    peer.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    let announced = try peer.take()
    #expect(announced.map(\.type) == [HTTP2FrameType.goAway, HTTP2FrameType.ping])
    #expect(announced.first?.payload.getInteger(at: 0, as: UInt32.self) == 0x7FFF_FFFF)
    let ping = try #require(announced.last?.payload.getInteger(at: 0, as: UInt64.self))

    try peer.open(3)
    try peer.send { $0.writePing(ping, acknowledgement: true) }
    let named = try peer.take()
    #expect(named.map(\.type) == [HTTP2FrameType.goAway])
    #expect(named.first?.payload.getInteger(at: 0, as: UInt32.self) == 3)
    try peer.open(5)
    #expect(peer.calls.count == 2)
    #expect(peer.channel.isActive)

    for call in peer.calls {
      call.stream.end(.trailers(GRPCTrailers.make(.init(.ok, ""), trailersOnly: true)))
      call.stream.flush()
    }
    let ends = try peer.take().filter { $0.type == HTTP2FrameType.headers }
    #expect(ends.map(\.stream) == [1, 3])
    peer.loop.advanceTime(by: .seconds(1))
    #expect(!peer.channel.isActive)
  }

  @Test("Answers that wait for the client's window are sent before the connection ends")
  func drainSlowClient() throws {
    let peer = try Peer.connected(settings: [HTTP2Setting(id: 4, value: 2)])
    try peer.open(1, end: true)
    let stream = try #require(peer.calls.first?.stream)
    stream.writeHead(GRPCTrailers.head)
    stream.write(ByteBuffer(string: "slow"))
    stream.end(.trailers(GRPCTrailers.ok))
    stream.flush()
    peer.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    let announced = try peer.take()
    let ping = try #require(announced.last?.payload.getInteger(at: 0, as: UInt64.self))
    try peer.send { $0.writePing(ping, acknowledgement: true) }
    #expect(peer.channel.isActive)
    try peer.send { $0.writeWindowUpdate(stream: 1, increment: 10) }

    let rest = try peer.take()
    #expect(rest.contains { String(buffer: $0.payload) == "ow" })
    #expect(rest.last?.flags == HTTP2Flag.endStream | HTTP2Flag.endHeaders)
  }

  @Test("A connection without calls receives GOAWAY after its idle time, one with a call does not")
  func idle() throws {
    let bounds = GRPCServer.Configuration(idleTimeMax: .zero)
    let idle = try Peer(bounds)
    try idle.send { $0.writeSettings([]) }
    idle.loop.advanceTime(by: .milliseconds(1))
    let busy = try Peer.connected(
      GRPCServer.Configuration(keepAliveInterval: .seconds(10_000), idleTimeMax: .seconds(3600))
    )
    try busy.open(1)
    busy.loop.advanceTime(by: .seconds(7200))

    let sent = try idle.take()
    let sentWhileBusy = try busy.take()
    #expect(sent.contains { $0.type == HTTP2FrameType.goAway })
    #expect(sentWhileBusy.allSatisfy { $0.type != HTTP2FrameType.goAway })
  }
}
