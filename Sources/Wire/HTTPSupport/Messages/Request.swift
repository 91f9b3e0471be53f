package import HTTPMessages
package import HTTPTypes
package import NIOCore

/// A request as an endpoint receives it.
package struct Request: Sendable {
  package let head: HTTPRequest
  /// The body: whole if its length was announced and small, streamed otherwise; read it only once.
  package let body: RequestBody
  /// The hold for the collected bytes of the body; nil if there is no common limit on memory.
  package let hold: TransferHold?

  package init(
    head: HTTPRequest,
    body: RequestBody = .whole(ByteBuffer()),
    hold: TransferHold? = nil
  ) {
    self.head = head
    self.body = body
    self.hold = hold
  }

  package var method: HTTPRequest.Method { head.method }
  package var headers: HTTPFields { head.headerFields }

  /// The target without its query, as sent.
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

  /// The announced length of the body; nil if there is none.
  package var contentLength: Int? { headers[.contentLength].flatMap { Int($0) } }
}

/// The connection of a request, as far as a responder may use it.
package struct HTTPContext: Sendable {
  package let channel: any Channel
  /// The watch that reports when the client of this request leaves.
  package let client: ClientWatch

  /// True if the client is on this machine, under any address.
  package var isFromThisMachine: Bool {
    channel.remoteAddress?.ipAddress.map(Self.isLoopback) ?? false
  }

  static func isLoopback(_ address: String) -> Bool {
    address == "::1" || address.hasPrefix("127.") || address.hasPrefix("::ffff:127.")
  }

  package init(channel: any Channel, client: ClientWatch = ClientWatch()) {
    self.channel = channel
    self.client = client
  }
}
