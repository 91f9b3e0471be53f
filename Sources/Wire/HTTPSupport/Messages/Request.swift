package import HTTPTypes
package import Invocation
package import NIOCore

/// What a door answers: the same as a function's reply, so that a function's goes out as it is.
package typealias Response = InvocationReply

/// A request as a door gets it.
package struct Request: Sendable {
  package let head: HTTPRequest
  /// Whole if its length was announced and small, otherwise as it arrives; read it only once.
  package let body: InvocationRequest.Body
  /// Counts the bytes of the body that are collected; nil when nothing bounds them together.
  package let hold: TransferHold?

  /// A request with its body.
  package init(
    head: HTTPRequest,
    body: InvocationRequest.Body = .whole(ByteBuffer()),
    hold: TransferHold? = nil
  ) {
    self.head = head
    self.body = body
    self.hold = hold
  }

  package var method: HTTPRequest.Method { head.method }
  package var headers: HTTPFields { head.headerFields }

  /// The target without its query, as it was sent.
  package var path: String {
    let target = head.path ?? "/"
    return target.utf8.firstIndex(of: UInt8(ascii: "?")).map { String(target[..<$0]) } ?? target
  }

  /// The parameters of the target's query.
  package var query: QueryParameters {
    let target = head.path ?? "/"
    let query = target.utf8.firstIndex(of: UInt8(ascii: "?")).map { target[$0...].dropFirst() }
    return QueryParameters(query ?? "")
  }

  /// The announced length of the body, or nil.
  package var contentLength: Int? { headers[.contentLength].flatMap { Int($0) } }
}

/// What a responder may know of the connection.
package struct HTTPContext: Sendable {
  package let channel: any Channel
  /// The watch that tells when the client of this request goes away.
  package let client: ClientWatch

  /// Whether the client is on this machine, whatever name it uses.
  package var isFromThisMachine: Bool {
    channel.remoteAddress?.ipAddress.map(Self.isLoopback) ?? false
  }

  static func isLoopback(_ address: String) -> Bool {
    address == "::1" || address.hasPrefix("127.") || address.hasPrefix("::ffff:127.")
  }

  /// The context of a request.
  package init(channel: any Channel, client: ClientWatch = ClientWatch()) {
    self.channel = channel
    self.client = client
  }
}
