import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import NIOHPACK
import NIOHTTP2
import ServiceLifecycle
import SwiftProtobuf
import Testing

@testable import HTTP2Server

@Suite("gRPC over a real connection", .timeLimit(.minutes(5)))
struct GRPCTransportTests {
  private static func echo(_ service: inout GRPCService) {
    service.unary("Say", on: .connection) { (request: Text, _) in Text("<\(request.value)>") }
    service.bidirectional("Chat") {
      (requests: GRPCRequestStream<Text>, replies: GRPCResponseStream<Text>, _) in
      for try await request in requests { try await replies.send(Text("<\(request.value)>")) }
    }
  }

  /// A compressed message with its prefix.
  private func compressed(_ text: String) throws -> ByteBuffer {
    var plain = try framed(text)
    plain.moveReaderIndex(forwardBy: GRPCFraming.prefixBytes)
    let bytes = try GZip.deflate(plain)
    var frame = ByteBuffer(bytes: [1])
    frame.writeInteger(UInt32(bytes.readableBytes))
    frame.writeImmutableBuffer(bytes)
    return frame
  }

  @Test("A client that compresses is understood, and answered in kind if it can read that")
  func gzip() async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        let text = String(repeating: "hello ", count: 2000)
        let plain = try await client.call(
          "/test.Echo/Say",
          headers: ["grpc-encoding": "gzip"],
          body: try compressed(text)
        )
        #expect(try plain.texts == ["<\(text)>"])

        let both: HPACKHeaders = ["grpc-encoding": "gzip", "grpc-accept-encoding": "identity,gzip"]
        let answer = try await client.call(
          "/test.Echo/Say",
          headers: both,
          body: try compressed(text)
        )
        #expect(answer.headers.first?.first(name: "grpc-encoding") == "gzip")
        var body = answer.body
        let flag = body.readInteger(as: UInt8.self)
        #expect(flag == 1)
        body.moveReaderIndex(forwardBy: 4)
        let inflated = try GZip.inflate(body, limit: GRPCMessageLimit(bytesMax: 100_000))
        let decoded: Text = try GRPCFraming.message(inflated)
        #expect(decoded.value == "<\(text)>")

        let short = try await client.call("/test.Echo/Say", headers: both, body: try framed("hi"))
        #expect(try short.texts == ["<hi>"])
      }
    }
  }

  @Test("What inflates beyond the limit, or is no gzip, is refused")
  func bomb() async throws {
    try await withServer(configuration: .init(requestBytesMax: 100_000), Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        let headers: HPACKHeaders = ["grpc-encoding": "gzip"]
        let bomb = try compressed(String(repeating: "0", count: 5_000_000))
        #expect(bomb.readableBytes < 100_000)
        let refused = try await client.call("/test.Echo/Say", headers: headers, body: bomb)
        #expect(refused.status == "8")

        let noise = ByteBuffer(bytes: [1, 0, 0, 0, 3, 7, 7, 7])
        #expect(
          try await client.call("/test.Echo/Say", headers: headers, body: noise).status == "3"
        )
        #expect(try await client.call("/test.Echo/Say", "after").status == "0")
      }
    }
  }

  @Test("10 000 calls, one after the other on one connection, are answered and forgotten")
  func manyCalls() async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        for number in 0..<10_000 {
          guard try await client.call("/test.Echo/Say", "\(number)").status == "0" else {
            Issue.record("Call \(number) failed.")
            return
          }
        }
      }
    }
  }

  @Test("A handler that does not read yet stops no other call, and loses nothing")
  func slowHandler() async throws {
    let (release, releaseSignal) = AsyncStream<Void>.makeStream()
    let configuration = GRPCServer.Configuration(streamWindowBytes: 128 * 1024)
    try await withServer(configuration: configuration) { service in
      service.bidirectional("Sip") {
        (requests: GRPCRequestStream<Text>, replies: GRPCResponseStream<Text>, _) in
        for await _ in release { break }
        var bytes = 0
        for try await request in requests { bytes += request.value.utf8.count }
        try await replies.send(Text("\(bytes)"))
      }
    } _: { address, _ in
      try await HTTP2Client.with(address) { client in
        let chunk = try framed(String(repeating: "x", count: 16_000))
        let chunks = 100
        let reply = try await client.stream { call in
          try await call.open("/test.Echo/Sip")
          let outbound = call.outbound
          async let sending: Void = {
            for _ in 0..<chunks {
              try await outbound.write(.data(.init(data: .byteBuffer(chunk))))
            }
            try await outbound.write(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true)))
          }()
          // Another call on the same connection is served while this call's window is closed.
          #expect(try await client.call("/test.Echo/Nope", "").status == "12")
          releaseSignal.yield()
          try await sending
          return try await call.reply()
        }
        #expect(try reply.texts == ["\(16_000 * chunks)"])
      }
    }
  }

  @Test("A client that has ended its requests still gets every reply")
  func halfClose() async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        let reply = try await client.stream { call in
          try await call.open("/test.Echo/Chat")
          try await call.send(try framed("a"))
          try await call.send(try framed("b"), end: true)
          return try await call.reply()
        }
        #expect(try reply.texts == ["<a>", "<b>"])
        #expect(reply.status == "0")
        #expect(reply.reset == nil)
      }
    }
  }

  @Test("Binary metadata is decoded, with and without padding")
  func binaryMetadata() {
    let context = GRPCContext(
      path: "/a/b",
      metadata: ["x-bin": "AQI", "x-bin": "AQI=, /w==", "x-bin": "%"]
    )

    #expect(context.binaryMetadata("x-bin") == [[1, 2], [1, 2], [255]])
  }

  @Test("Requests that are not gRPC's reach the HTTP responder, with their bodies")
  func rest() async throws {
    let responder: HTTP2Responder = { request, _ in
      guard let length = try? await request.wholeBody(upTo: 1 << 20).readableBytes else {
        return Response(status: .badRequest)
      }
      let text = "\(request.method) \(request.path) \(request.head.authority ?? "") \(length)"
      return Response(
        status: .created,
        headers: [.contentType: "text/plain"],
        body: .whole(ByteBuffer(string: text))
      )
    }
    let body: @Sendable (ServerAddress, ServiceGroup) async throws -> Void = { address, _ in
      try await HTTP2Client.with(address) { client in
        let body = ByteBuffer(repeating: 7, count: 600_000)
        let reply = try await client.call(
          "/v1/things?a=b",
          headers: ["content-type": "application/json"],
          body: body
        )
        #expect(reply.headers.first?.first(name: ":status") == "201")
        #expect(reply.headers.first?.first(name: "content-type") == "text/plain")
        #expect(String(buffer: reply.body) == "POST /v1/things localhost 600000")
        #expect(reply.reset == nil)

        let method = try await client.call(
          "/test.Echo/Say",
          headers: ["content-type": "application/json"],
          "x"
        )
        #expect(method.trailers.first(name: ":status") == "415")
        #expect(try await client.call("/test.Echo/Say", "x").status == "0")
      }
    }
    try await withServer(Self.echo, body, rest: responder)
  }
}
