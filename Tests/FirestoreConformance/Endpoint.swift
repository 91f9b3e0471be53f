import Foundation
import HTTPSupport
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import OutboundHTTP
import StatusCodes

/// The two protocols of the service, which must give the same responses.
enum EndpointKind: String, CaseIterable, Sendable {
  case gRPC, REST
}

/// A client of a running service over one protocol.
///
/// Responses are JSON text; a streamed method returns an array.
protocol Endpoint: Sendable {
  func call(_ rpc: RPC, _ request: String, authorization: String?) async throws -> String
}

/// A gRPC client that opens one HTTP/2 connection for each call.
struct GRPCEndpoint: Endpoint {
  let port: Int

  func call(_ rpc: RPC, _ request: String, authorization: String?) async throws -> String {
    var headers: HPACKHeaders = [
      ":method": "POST", ":scheme": "http", ":authority": "127.0.0.1:\(port)",
      ":path": "/google.firestore.v1.Firestore/\(rpc.name)",
      "content-type": "application/grpc", "te": "trailers",
    ]
    if let authorization { headers.add(name: "authorization", value: authorization) }
    let message = try rpc.bytes(request)
    var frame = ByteBuffer(bytes: [0])
    frame.writeInteger(UInt32(message.count))
    frame.writeBytes(message)
    var (trailers, body) = try await exchange(headers, frame)

    let code = StatusCode(rawValue: Int(trailers.first(name: "grpc-status") ?? "") ?? 2)
    if code != .ok {
      let text = percentDecoded(trailers.first(name: "grpc-message") ?? "") ?? ""
      throw StatusError(code ?? .unknown, text)
    }
    var replies: [String] = []
    while body.readInteger(as: UInt8.self) != nil, let length = body.readInteger(as: UInt32.self),
      let bytes = body.readBytes(length: Int(length))
    {
      replies.append(try rpc.json(bytes))
    }
    return rpc.isStreamed ? "[\(replies.joined(separator: ","))]" : replies.first ?? ""
  }

  private func exchange(
    _ headers: HPACKHeaders,
    _ body: ByteBuffer
  ) async throws -> (trailers: HPACKHeaders, body: ByteBuffer) {
    let (channel, multiplexer) = try await ClientBootstrap(
      group: MultiThreadedEventLoopGroup.singleton
    )
    .connect(host: "127.0.0.1", port: port) { channel in
      channel.configureAsyncHTTP2Pipeline(mode: .client) { $0.eventLoop.makeSucceededVoidFuture() }
        .map { (channel, $0) }
    }
    let stream = try await multiplexer.openStream { stream in
      stream.eventLoop.makeCompletedFuture {
        try NIOAsyncChannel<HTTP2Frame.FramePayload, HTTP2Frame.FramePayload>(
          wrappingChannelSynchronously: stream
        )
      }
    }
    let reply = try await stream.executeThenClose { inbound, outbound in
      try await outbound.write(.headers(.init(headers: headers)))
      try await outbound.write(.data(.init(data: .byteBuffer(body), endStream: true)))
      var trailers: HPACKHeaders = [:]
      var received = ByteBuffer()
      do {
        for try await frame in inbound {
          switch frame {
          case .headers(let payload): trailers = payload.headers
          case .data(let payload):
            if case .byteBuffer(var bytes) = payload.data { received.writeBuffer(&bytes) }
          default: break
          }
        }
      } catch let error as NIOHTTP2Errors.StreamClosed where error.errorCode == .noError {
        // The server had already responded and refused the rest of the request.
      }
      return (trailers, received)
    }
    try await channel.close()
    return reply
  }
}

/// A REST client that derives path and parameters from the request's JSON.
struct RESTEndpoint: Endpoint {
  let client: OutboundClient
  let port: Int

  func call(_ rpc: RPC, _ request: String, authorization: String?) async throws -> String {
    var members = try JSON.object(request)
    let (method, target, body) = try Self.translate(rpc, &members)
    let response = try await send(method, "/v1/\(target)", body, authorization: authorization)
    guard response.isSuccess else { throw try Self.error(response, isStreamed: rpc.isStreamed) }
    return response.text
  }

  func send(
    _ method: String,
    _ target: String,
    _ body: String = "",
    headers: OutboundHeaders = [:],
    authorization: String? = "Bearer owner"
  ) async throws -> OutboundResponse {
    var headers = headers
    if let authorization { headers.append("authorization", authorization) }
    return try await client.send(
      OutboundRequest(
        method: method,
        url: "http://127.0.0.1:\(port)\(target)",
        headers: headers,
        body: Array(body.utf8)
      )
    )
  }

  private static func translate(
    _ rpc: RPC,
    _ members: inout [String: Any]
  ) throws -> (method: String, target: String, body: String) {
    func take(_ name: String) -> String { members.removeValue(forKey: name) as? String ?? "" }
    func collection() -> String { "\(path(take("parent")))/\(escaped(take("collectionId")))" }
    switch rpc.name {
    case "GetDocument":
      return ("GET", path(take("name")) + parameters(members), "")
    case "DeleteDocument":
      return ("DELETE", path(take("name")) + parameters(members), "")
    case "ListDocuments":
      return ("GET", collection() + parameters(members), "")
    case "CreateDocument":
      let document = members.removeValue(forKey: "document") ?? [:]
      return ("POST", collection() + parameters(members), try JSON.text(document))
    case "UpdateDocument":
      var document = members.removeValue(forKey: "document") as? [String: Any] ?? [:]
      let name = document.removeValue(forKey: "name") as? String ?? ""
      return ("PATCH", path(name) + parameters(members), try JSON.text(document))
    case "RunQuery", "RunAggregationQuery", "ListCollectionIds":
      let target = "\(path(take("parent"))):\(verb(rpc.name))"
      return ("POST", target, try JSON.text(members))
    case "BatchGetDocuments":
      return ("POST", "\(path(take("database")))/documents:batchGet", try JSON.text(members))
    default:
      let target = "\(path(take("database")))/documents:\(verb(rpc.name))"
      return ("POST", target, try JSON.text(members))
    }
  }

  private static func verb(_ name: String) -> String {
    name.prefix(1).lowercased() + name.dropFirst()
  }

  private static func path(_ name: String) -> String {
    name.split(separator: "/", omittingEmptySubsequences: false).map { escaped(String($0)) }
      .joined(separator: "/")
  }

  private static func escaped(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text
  }

  /// Query parameters for the other members: `mask.fieldPaths=a&mask.fieldPaths=b&pageSize=1`.
  private static func parameters(_ members: [String: Any]) -> String {
    var items: [String] = []
    func add(_ name: String, _ value: Any) {
      switch value {
      case let members as [String: Any]:
        for (key, value) in members { add("\(name).\(key)", value) }
      case let elements as [Any]: for element in elements { add(name, element) }
      // Foundation distinguishes `true` from `1` on some platforms only.
      case let flag as Bool where name.hasSuffix("exists") || name == "showMissing":
        items.append("\(name)=\(flag)")
      default: items.append("\(name)=\(escaped("\(value)"))")
      }
    }
    for (name, value) in members { add(name, value) }
    return items.isEmpty ? "" : "?" + items.joined(separator: "&")
  }

  private static func error(_ response: OutboundResponse, isStreamed: Bool) throws -> StatusError {
    let text = isStreamed ? String(response.text.dropFirst().dropLast()) : response.text
    let error = try JSON.object(text)["error"] as? [String: Any] ?? [:]
    let code = StatusCode(name: error["status"] as? String ?? "") ?? .unknown
    guard code.httpStatus == response.status, error["code"] as? Int == response.status else {
      return StatusError(.dataLoss, "status and body disagree: \(response.status) \(response.text)")
    }
    return StatusError(code, error["message"] as? String ?? "")
  }
}

/// JSON in Foundation's representation.
enum JSON {
  static func object(_ text: String) throws -> [String: Any] {
    try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
  }

  static func text(_ value: Any) throws -> String {
    String(
      decoding: try JSONSerialization.data(
        withJSONObject: value,
        options: [.sortedKeys, .withoutEscapingSlashes]
      ),
      as: UTF8.self
    )
  }

  /// Returns the JSON with sorted keys and without values that vary by run: times, tokens, `done`.
  static func normalized(_ text: String) throws -> String {
    try Self.text(stripped(try JSONSerialization.jsonObject(with: Data(text.utf8))))
  }

  /// Returns the first value of a key at any depth.
  static func first(_ key: String, in value: Any) -> String? {
    if let members = value as? [String: Any] {
      return members[key] as? String
        ?? members.values.lazy.compactMap { first(key, in: $0) }.first
    }
    return (value as? [Any])?.lazy.compactMap { first(key, in: $0) }.first
  }

  private static let volatile: Set<String> = [
    "createTime", "updateTime", "readTime", "commitTime", "transaction", "nextPageToken", "done",
  ]

  private static func stripped(_ value: Any) -> Any {
    if let members = value as? [String: Any] {
      var kept: [String: Any] = [:]
      for (key, member) in members where !volatile.contains(key) {
        // Foundation may have parsed a large whole number as an integer.
        let number = key == "doubleValue" ? (member as? Double).map { "\($0)" } : nil
        kept[key] = number ?? stripped(member)
      }
      return kept
    }
    return (value as? [Any])?.map(stripped) ?? value
  }
}
