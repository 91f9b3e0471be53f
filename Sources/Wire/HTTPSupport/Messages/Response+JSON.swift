package import HTTPMessages
package import HTTPTypes
import JSONText
package import NIOCore
package import StatusCodes

extension Response {
  /// Creates a response from a status, header fields and a body.
  package init(
    status: HTTPResponse.Status,
    headers: HTTPFields = [:],
    body: Response.Body = .whole(ByteBuffer())
  ) {
    self.init(head: HTTPResponse(status: status, headerFields: headers), body: body)
  }

  package var status: HTTPResponse.Status { head.status }

  package var headers: HTTPFields {
    get { head.headerFields }
    set { head.headerFields = newValue }
  }

  /// Creates a response from text that is already JSON.
  package static func json(_ body: ByteBuffer, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status,
      headers: [.contentType: "application/json; charset=utf-8"],
      body: .whole(body)
    )
  }

  /// Creates a response from text that is already JSON.
  package static func json(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
    json(ByteBuffer(string: text), status: status)
  }

  /// Creates a JSON response from a value; throws the errors of its `encode(to:)`.
  ///
  /// Equal values have equal bytes.
  package static func json(
    encoding value: some Encodable,
    status: HTTPResponse.Status = .ok
  ) throws -> Response {
    json(ByteBuffer(bytes: try value.jsonBytes()), status: status)
  }

  /// Creates a response of plain text.
  package static func text(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status,
      headers: [.contentType: "text/plain; charset=utf-8"],
      body: .whole(ByteBuffer(string: text))
    )
  }

  /// Creates a response with an HTML page.
  package static func html(_ text: String) -> Response {
    Response(
      status: .ok,
      headers: [.contentType: "text/html; charset=utf-8"],
      body: .whole(ByteBuffer(string: text))
    )
  }

  /// Creates a response with the JSON error body of Google's REST services.
  ///
  /// The body has the form `{"error":{"code":404,"message":"…","status":"NOT_FOUND"}}`. The HTTP
  /// status is that of `code`, unless the endpoint passes another.
  package static func error(
    _ code: StatusCode,
    _ message: String,
    httpStatus: Int? = nil
  ) -> Response {
    let error = StatusError(code, message)
    return json(
      GoogleErrorBody.rest(error, httpStatus: httpStatus),
      status: .numbered(httpStatus ?? code.httpStatus)
    )
  }

  /// Creates a response with the JSON error body for an error.
  ///
  /// An error without a status of its own becomes `INTERNAL` without any details for the client, so
  /// log it.
  package static func error(_ error: any Error, httpStatus: Int? = nil) -> Response {
    if error is BodyTooSlowError, httpStatus == nil { return .error(error, httpStatus: 408) }
    let error = StatusError.publicError(for: error)
    return .error(error.statusCode, error.statusMessage, httpStatus: httpStatus)
  }
}

extension HTTPResponse.Status {
  /// Returns the status with this number, including 499, which Google's table uses and HTTP lacks.
  package static func numbered(_ code: Int) -> HTTPResponse.Status {
    code == 499
      ? HTTPResponse.Status(code: 499, reasonPhrase: "Client Closed Request")
      : HTTPResponse.Status(code: code)
  }
}
