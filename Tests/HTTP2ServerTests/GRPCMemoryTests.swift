import HTTPSupport
import Logging
import NIOCore
import StatusCodes
import SwiftProtobuf
import Testing
import TestSupport

@testable import HTTP2Server

@Suite("The memory of replies that clients do not read", .timeLimit(.minutes(5)))
struct GRPCMemoryTests {
  private func budget(_ bytesMax: Int, stallMin: Duration = .seconds(3600)) -> TransferBudget {
    TransferBudget(
      bytesMax: bytesMax,
      stallMin: stallMin,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
  }

  /// Starts a send to a client without a flow-control window; returns the status that ends it.
  private func stalledSend(_ writer: GRPCStreamWriter) -> Task<StatusCode?, Never> {
    writer.setWritable(false)
    return Task {
      do {
        try await writer.send(ByteBuffer(repeating: 1, count: 10))
        return nil
      } catch {
        return (error as? any StatusConvertible)?.statusCode ?? .cancelled
      }
    }
  }

  @Test("What handlers keep is bounded for all streams together, and given back with each")
  func bound() throws {
    // Three quarters of it are for what handlers keep.
    let budget = budget(160)
    let first = GRPCStreamWriter(budget: budget) {}
    let second = GRPCStreamWriter(budget: budget) {}
    try first.hold(60)
    try second.hold(60)
    #expect(throws: budget.error.exhausted) { try second.hold(70) }
    #expect(budget.heldBytes == 120)
    try first.hold(10)
    try second.hold(110)
    second.close()
    #expect(budget.heldBytes == 10)
    try first.hold(0)
    #expect(budget.heldBytes == 0)
  }

  @Test("The call of a client that has stalled gives way; one whose handler works does not")
  func stalled() async throws {
    let budget = budget(160, stallMin: .zero)
    let working = GRPCStreamWriter(budget: budget) {}
    let slow = GRPCStreamWriter(budget: budget) {}
    let other = GRPCStreamWriter(budget: budget) {}
    try working.hold(40)
    try slow.hold(80)
    #expect(throws: budget.error.exhausted) { try other.hold(50) }
    let send = stalledSend(slow)
    // Before the slow client's send waits, its memory is refused to other calls.
    await eventually("the slow client gives way") { (try? other.hold(50)) != nil }

    #expect(await send.value == .resourceExhausted)
    #expect(budget.heldBytes == 90)
    await #expect(throws: budget.error.exhausted) { try await slow.send(ByteBuffer(string: "x")) }
    try working.hold(50)
  }

  @Test("A reply for which there is no memory is RESOURCE_EXHAUSTED, and cancelled ones keep none")
  func unaryReplies() async throws {
    let budget = budget(250_000)
    try await withServer(budget: budget) { service in
      service.unary("Say") { (_: Text, _) in Text(String(repeating: "x", count: 200_000)) }
    } _: { address, _ in
      for _ in 0..<5 {
        try await RawHTTP2.with(address) { reader in
          try await reader.send { bytes in
            bytes.writeString(RawHTTP2.preface)
            // A window of zero blocks the reply, so it stays in memory until the connection ends.
            bytes.writeSettings([HTTP2Setting(id: HTTP2Setting.initialWindowSize, value: 0)])
            bytes.writeHeaders(stream: 1, block: .callHead("/test.Echo/Say"), end: false)
            bytes.writeData(stream: 1, bytes: try framed(""))
            bytes.writeFrameHeader(
              length: 0,
              type: HTTP2FrameType.data,
              flags: HTTP2Flag.endStream,
              stream: 1
            )
          }
          await eventually("the reply is held") { budget.heldBytes >= 200_000 }
          try await HTTP2Client.with(address) { client in
            let refused = try await client.call("/test.Echo/Say", "")
            #expect(refused.status == "8")
            #expect(refused.message?.contains("memory") == true)
          }
        }
        await eventually("the reply is given up") { budget.heldBytes == 0 }
      }
      let served = try await HTTP2Client.with(address) { client in
        try await client.call("/test.Echo/Say", "")
      }
      #expect(served.status == "0")
      #expect(budget.heldBytes == 0)
    }
  }
}
