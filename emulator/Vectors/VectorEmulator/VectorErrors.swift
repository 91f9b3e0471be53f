import HTTPMessages
import HTTPSupport
import JSONText
import NIOCore
import StatusCodes

/// The error of a request body with a wrong form.
///
/// It has no status of its own, because the planes respond with different statuses.
struct MalformedRequestError: Error, Equatable {
  var message: String

  static func missing(_ name: String) -> MalformedRequestError {
    MalformedRequestError(message: "missing field `\(name)`")
  }
}

/// The error of a request with more data than allowed.
struct RequestTooLargeError: Error, Equatable {
  var bytes: Int
  var bytesMax: Int
}

/// The error formats of the parts of Pinecone's API.
enum VectorErrorForm {
  /// `{"status":404,"error":{"code":"NOT_FOUND","message":"…"}}`; a malformed body has status 422.
  case control
  /// `{"code":5,"message":"…","details":[]}`
  case vectors
  /// The format of the control plane, but a malformed body has status 400.
  case documents

  /// Returns the response for an error; nil for an error whose details must stay internal.
  func response(_ error: any Error) -> Response? {
    switch error {
    case let error as MalformedRequestError:
      return self == .control
        ? reply(
          422,
          "UNPROCESSABLE_ENTITY",
          .invalidArgument,
          "Failed to deserialize the JSON body into the target type: \(error.message)"
        ) : reply(400, "INVALID_ARGUMENT", .invalidArgument, error.message)
    case let error as RequestTooLargeError:
      let message =
        "Error, message length too large: found \(error.bytes) bytes, the limit is: "
        + "\(error.bytesMax) bytes"
      return self == .vectors
        ? reply(400, "OUT_OF_RANGE", .outOfRange, message)
        : reply(413, "PAYLOAD_TOO_LARGE", .outOfRange, message)
    case let error as BodyTooLargeError:
      return response(RequestTooLargeError(bytes: error.bytesMax + 1, bytesMax: error.bytesMax))
    case let error as any StatusConvertible:
      let (status, name) = Self.status(error.statusCode)
      return reply(status, name, error.statusCode, error.statusMessage)
    default: return nil
    }
  }

  private func reply(
    _ status: Int,
    _ name: String,
    _ code: StatusCode,
    _ message: String
  ) -> Response {
    let body: JSONValue =
      self == .vectors
      ? ["code": JSONValue(code.rawValue), "message": .string(message), "details": []]
      : [
        "status": JSONValue(status), "error": ["code": .string(name), "message": .string(message)],
      ]
    return .json(body, status: status)
  }

  /// Returns the status and name of a code, with Pinecone's deviations from `google.rpc.Code`.
  private static func status(_ code: StatusCode) -> (Int, String) {
    switch code {
    case .permissionDenied: (403, "FORBIDDEN")
    case .failedPrecondition: (412, "FAILED_PRECONDITION")
    case .internal: (500, "UNKNOWN")
    default: (code.httpStatus, code.name)
    }
  }
}

extension StatusError {
  /// Creates the error for a feature that is not emulated.
  static func notEmulated(_ feature: String, _ advice: String) -> StatusError {
    .invalidArgument("\(feature) not emulated; \(advice)")
  }
}

extension Response {
  /// Creates a JSON response.
  static func json(_ json: JSONValue, status: Int = 200) -> Response {
    .json(ByteBuffer(bytes: json.bytes), status: .numbered(status))
  }
}
