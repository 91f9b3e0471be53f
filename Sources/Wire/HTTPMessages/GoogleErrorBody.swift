import JSONText
package import StatusCodes

/// The JSON texts in which Google's services report an error.
package enum GoogleErrorBody {
  /// Returns the text of REST services.
  ///
  /// It has the form `{"error":{"code":404,"message":"…","status":"NOT_FOUND"}}`.
  /// `code` is the HTTP status, by default that of the error. Details are added if there are any.
  package static func rest(_ error: any StatusConvertible, httpStatus: Int? = nil) -> String {
    let details = error.statusDetails.map(detail).joined(separator: ",")
    return "{\"error\":{\"code\":\(httpStatus ?? error.statusCode.httpStatus),"
      + "\"message\":\(jsonQuoted(error.statusMessage)),\"status\":\"\(error.statusCode.name)\""
      + (details.isEmpty ? "" : ",\"details\":[\(details)]") + "}}"
  }

  /// Returns the text of callables: `{"error": {"details"?, "message", "status"}}`.
  ///
  /// `details` is JSON text.
  package static func callable(
    _ code: StatusCode,
    _ message: String,
    details: [UInt8]? = nil
  ) -> [UInt8] {
    var json = Array(#"{"error":{"#.utf8)
    if let details {
      json += #""details":"#.utf8
      json += details
      json += ",".utf8
    }
    json += #""message":\#(jsonQuoted(message)),"status":"\#(code.name)"}}"#.utf8
    return json
  }

  private static func detail(_ detail: StatusDetail) -> String {
    switch detail {
    case .badRequest(let violations):
      let list = violations.map { violation in
        "{" + (violation.field.map { "\"field\":\(jsonQuoted($0))," } ?? "")
          + "\"description\":\(jsonQuoted(violation.description))}"
      }
      return "{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":["
        + list.joined(separator: ",") + "]}"
    case .errorInfo(let reason, let metadata):
      let pairs = metadata.sorted { $0.key < $1.key }.map {
        "\(jsonQuoted($0.key)):\(jsonQuoted($0.value))"
      }
      return "{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"\(reason)\","
        + "\"domain\":\"firestore.googleapis.com\""
        + (pairs.isEmpty ? "" : ",\"metadata\":{\(pairs.joined(separator: ","))}") + "}"
    }
  }
}
