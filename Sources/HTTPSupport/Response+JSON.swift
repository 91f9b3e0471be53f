package import HTTPTypes
package import HummingbirdCore
package import NIOCore
package import RuntimeSupport

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// How an error body is laid out.
package enum ErrorForm: Sendable {
  /// `{"error":{"code":404,"message":"…","status":"NOT_FOUND"}}`, as Google's REST services answer.
  case google
  /// `{"error":{"message":"…","status":"NOT_FOUND"}}`, as callables answer.
  case callable
}

extension Response {
  /// A JSON reply from text that is JSON already.
  package static func json(_ body: ByteBuffer, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status,
      headers: [.contentType: "application/json; charset=utf-8"],
      body: ResponseBody(byteBuffer: body)
    )
  }

  /// A JSON reply from text that is JSON already.
  package static func json(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
    json(ByteBuffer(string: text), status: status)
  }

  /// A JSON reply from a value; throws what its `encode(to:)` throws.
  ///
  /// The default encoder sorts keys and leaves slashes alone, so equal values give equal bytes.
  package static func json(
    encoding value: some Encodable,
    status: HTTPResponse.Status = .ok,
    encoder: JSONEncoder? = nil
  ) throws -> Response {
    let encoder = encoder ?? .plain
    return json(ByteBuffer(bytes: try encoder.encode(value)), status: status)
  }

  /// A reply of plain text.
  package static func text(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status,
      headers: [.contentType: "text/plain; charset=utf-8"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text))
    )
  }

  /// The JSON error body for a status.
  ///
  /// The HTTP status is the code's, unless the door wants another.
  package static func error(
    _ code: StatusCode,
    _ message: String,
    form: ErrorForm = .google,
    httpStatus: Int? = nil
  ) -> Response {
    let http = httpStatus ?? code.httpStatus
    let start = form == .google ? "{\"error\":{\"code\":\(http)," : "{\"error\":{"
    return json(
      "\(start)\"message\":\(jsonQuoted(message)),\"status\":\"\(code.name)\"}}",
      status: .numbered(http)
    )
  }

  /// The JSON error body for an error.
  ///
  /// An error without a status of its own becomes `INTERNAL` and tells the client nothing; log it.
  package static func error(
    _ error: any Error,
    form: ErrorForm = .google,
    httpStatus: Int? = nil
  ) -> Response {
    switch error {
    case let error as any StatusConvertible:
      .error(error.statusCode, error.statusMessage, form: form, httpStatus: httpStatus)
    case is CancellationError:
      .error(.cancelled, "The request was cancelled.", form: form, httpStatus: httpStatus)
    default:
      .error(.internal, "Internal error.", form: form, httpStatus: httpStatus)
    }
  }
}

extension HTTPResponse.Status {
  /// The status with this number; knows the 499 that Google's table uses and HTTP does not.
  package static func numbered(_ code: Int) -> HTTPResponse.Status {
    code == 499
      ? HTTPResponse.Status(code: 499, reasonPhrase: "Client Closed Request")
      : HTTPResponse.Status(code: code)
  }
}

extension JSONEncoder {
  /// Sorted keys, slashes as they are.
  fileprivate static var plain: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}

/// A string as JSON writes it, with its quotes.
package func jsonQuoted(_ text: String) -> String {
  var quoted = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"": quoted += "\\\""
    case "\\": quoted += "\\\\"
    case "\n": quoted += "\\n"
    case "\r": quoted += "\\r"
    case "\t": quoted += "\\t"
    case "\u{0}"..<" ":
      let digits = String(scalar.value, radix: 16)
      quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default:
      quoted.unicodeScalars.append(scalar)
    }
  }
  return quoted + "\""
}
