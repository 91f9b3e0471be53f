package import DocumentModel
package import HTTPMessages
import HTTPTypes
import Identifiers
package import Invocation
import NIOCore
import StatusCodes

/// The client side of the callable protocol, for callers in the same process.
package enum CallableClient {
  private static let replyBytesMax = 32 << 20

  /// Returns the request that a client sends to call a function.
  ///
  /// Throws `ValueCodingError` if the data cannot be represented as JSON.
  package static func request(
    for function: String,
    _ data: some Encodable,
    dates: JSONDates,
    authorization: String?,
    id: String = RandomID.make()
  ) throws -> InvocationRequest {
    let encoder = ValueEncoder(dialect: .json(dates: dates))
    let body = try JSONWriter.write(.map(["data": try encoder.encode(data)]))
    var head = HTTPRequest(
      method: .post,
      scheme: "http",
      authority: "localhost",
      path: "/\(function)"
    )
    head.headerFields[.contentType] = "application/json"
    head.headerFields[.authorization] = authorization
    return InvocationRequest(id: id, function: function, head: head, body: ByteBuffer(bytes: body))
  }

  /// Returns a value as the JSON of an event or task, in which large integers are plain digits.
  ///
  /// Throws `ValueCodingError` if the value cannot be represented as JSON.
  package static func json(_ value: some Encodable, dates: JSONDates) throws -> [UInt8] {
    var writer = JSONWriter(wrapsIntegers: false)
    try writer.append(try ValueEncoder(dialect: .json(dates: dates)).encode(value))
    return writer.bytes
  }

  /// Returns the decoded result of a call, or throws the `CallableError` that the reply contains.
  package static func result<Reply: Decodable>(
    of reply: Response,
    as type: Reply.Type = Reply.self,
    dates: JSONDates
  ) async throws -> Reply {
    let body = try await reply.body.collect(upTo: replyBytesMax)
    guard case .map(let envelope) = try JSONReader.read(body.readableBytesView) else {
      throw CallableError(.internal, "The reply is not a JSON object.")
    }
    if case .map(let error)? = envelope["error"] { throw self.error(error) }
    guard let result = envelope["result"] else {
      throw CallableError(.internal, "The reply has neither a result nor an error.")
    }
    return try ValueDecoder(dialect: .json(dates: dates)).decode(type, from: result)
  }

  private static func error(_ fields: MapValue) -> CallableError {
    func text(_ key: String) -> String {
      if case .string(let text)? = fields[key] { text } else { "" }
    }
    return CallableError(
      StatusCode(name: text("status")) ?? .internal,
      text("message"),
      details: fields["details"]
    )
  }
}
