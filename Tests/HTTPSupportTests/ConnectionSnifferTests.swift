import NIOCore
import NIOEmbedded
import Testing

@testable import HTTPSupport

@Suite("Preface sniff")
struct PrefaceSniffTests {
  private static let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

  @Test("The preface is HTTP/2 with its last byte, in whatever pieces it comes")
  func pieces() {
    for size in 1...Self.preface.utf8.count {
      var sniff = PrefaceSniff()
      var rest = Array(Self.preface.utf8)[...]
      while rest.count > size {
        #expect(sniff.receive(rest.prefix(size)) == .undecided)
        rest = rest.dropFirst(size)
      }
      #expect(sniff.receive(rest) == .http2)
    }
  }

  @Test(
    "Anything else is HTTP/1 at its first other byte",
    arguments: ["G", "PO", "PRI * HTTP/1", "PRI * HTTP/2.0\r\n\r\nSMX", "\u{0}"]
  )
  func others(text: String) {
    var sniff = PrefaceSniff()

    #expect(sniff.receive(text.utf8.dropLast()) == .undecided)
    #expect(sniff.receive(text.utf8.suffix(1)) == .http1)
  }
}

@Suite("Connection sniffer")
struct ConnectionSnifferTests {
  private final class Outcome {
    var verdicts: [PrefaceSniff.Verdict] = []
  }

  private let channel = EmbeddedChannel()
  private let outcome = Outcome()

  private init() throws {
    let sniffer = ConnectionSniffer(
      timeMax: .seconds(10),
      configure: { [outcome, channel] verdict in
        outcome.verdicts.append(verdict)
        return channel.eventLoop.makeSucceededVoidFuture()
      }
    )
    try channel.pipeline.syncOperations.addHandler(sniffer)
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
  }

  @Test("Bytes are held until the verdict and then passed on, and the sniffer leaves")
  func passesOn() throws {
    try channel.writeInbound(ByteBuffer(string: "PRI * HT"))
    #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
    try channel.writeInbound(ByteBuffer(string: "TP/2.0\r\n\r\nSM\r\n\r\nmore"))

    #expect(outcome.verdicts == [.http2])
    let passed = try channel.readInbound(as: ByteBuffer.self)
    #expect(passed.map { String(buffer: $0) } == "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore")
    #expect(throws: (any Error).self) {
      try channel.pipeline.syncOperations.handler(type: ConnectionSniffer.self)
    }
    channel.embeddedEventLoop.advanceTime(by: .seconds(11))
    #expect(channel.isActive)
  }

  @Test("End of input closes an undecided connection")
  func closes() throws {
    channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)

    #expect(!channel.isActive)
    #expect(outcome.verdicts == [])
  }

  @Test("Shutdown closes an undecided connection")
  func quiesces() throws {
    try channel.writeInbound(ByteBuffer(string: "PRI"))
    channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())

    #expect(!channel.isActive)
  }

  @Test("A connection whose client sends nothing is closed after the time limit, not before")
  func timesOut() throws {
    try channel.writeInbound(ByteBuffer(string: "P"))
    channel.embeddedEventLoop.advanceTime(by: .seconds(9))
    #expect(channel.isActive)
    channel.embeddedEventLoop.advanceTime(by: .seconds(2))

    #expect(!channel.isActive)
  }

  @Test("A verdict beats a shutdown that comes after it")
  func quiesceAfterVerdict() throws {
    try channel.writeInbound(ByteBuffer(string: "GET"))
    channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())

    #expect(outcome.verdicts == [.http1])
    #expect(channel.isActive)
  }
}
