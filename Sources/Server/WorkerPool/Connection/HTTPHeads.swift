import HTTPMessages
import HTTPTypes
import Invocation
import NIOCore
import NIOHTTP1

/// Headers that belong to one connection and are not forwarded; see RFC 9110, section 7.6.1.
private let hopByHop: Set<HTTPField.Name> = [
  .connection, .transferEncoding, .te, .trailer, .upgrade, .proxyAuthenticate,
  .proxyAuthorization, fieldName("keep-alive"), fieldName("proxy-connection"),
]

/// The additional header names that a `Connection` header lists.
private func named(by connection: String?) -> Set<String> {
  guard let connection else { return [] }
  return Set(
    connection.split(separator: ",").map {
      $0.drop { $0 == " " }.prefix { $0 != " " }.lowercased()
    }
  )
}

extension HTTPRequestHead {
  /// Creates the request head for a worker.
  ///
  /// It carries the invocation's ID and, if known, the length of the body. `clockLead` is the time
  /// by which the clock of functions is ahead of the machine's.
  init(_ request: InvocationRequest, clockLead: Duration) {
    var headers = HTTPHeaders()
    headers.reserveCapacity(request.head.headerFields.count + 5)
    headers.add(name: "host", value: request.head.authority ?? "localhost")
    let alsoDropped = named(by: request.head.headerFields[.connection])
    for field in request.head.headerFields {
      let name = field.name
      if hopByHop.contains(name) || name == .contentLength || name == InvocationRequest.idHeader
        || name == InvocationRequest.functionHeader
        || name == .expect || !alsoDropped.isEmpty && alsoDropped.contains(name.canonicalName)
      {
        continue
      }
      headers.add(name: name.rawName, value: field.value)
    }
    headers.add(name: InvocationRequest.idHeader.rawName, value: request.id)
    headers.add(name: InvocationRequest.functionHeader.rawName, value: request.function)
    if clockLead > .zero {
      let microseconds = Int64(clockLead / .microseconds(1))
      headers.add(name: InvocationRequest.clockLeadHeader.rawName, value: String(microseconds))
    }
    switch request.body {
    case .whole(let body):
      headers.add(name: "content-length", value: String(body.readableBytes))
    case .stream:
      if let length = request.head.headerFields[.contentLength] {
        headers.add(name: "content-length", value: length)
      } else {
        headers.add(name: "transfer-encoding", value: "chunked")
      }
    }
    self.init(
      version: .http1_1,
      method: HTTPMethod(rawValue: request.head.method.rawValue),
      uri: Self.target(request.head.path),
      headers: headers
    )
  }

  /// Returns the path with every byte escaped that could break the request line.
  private static func target(_ path: String?) -> String {
    guard let path, !path.isEmpty else { return "/" }
    if path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) { return path }
    let digits = Array("0123456789ABCDEF".utf8)
    var target: [UInt8] = []
    for byte in path.utf8 {
      if byte > 0x20 && byte < 0x7F {
        target.append(byte)
      } else {
        target += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: target, as: UTF8.self)
  }
}

extension HTTPResponse {
  /// Creates a response from a worker's head, without the headers that belong to the connection.
  init(_ head: HTTPResponseHead) {
    var fields = HTTPFields()
    fields.reserveCapacity(head.headers.count)
    let alsoDropped = named(by: head.headers.first(name: "connection"))
    for (name, value) in head.headers {
      guard let name = HTTPField.Name(name), !hopByHop.contains(name),
        alsoDropped.isEmpty || !alsoDropped.contains(name.canonicalName)
      else { continue }
      fields.append(HTTPField(name: name, value: value))
    }
    self.init(
      status: Status(code: Int(head.status.code), reasonPhrase: head.status.reasonPhrase),
      headerFields: fields
    )
  }
}
