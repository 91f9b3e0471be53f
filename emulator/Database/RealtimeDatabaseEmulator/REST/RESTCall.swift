import DatabaseModel
import DatabaseTree
import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText

/// A request for a node, with its parameters checked.
struct RESTCall {
  var method: HTTPRequest.Method
  var location: DatabaseLocation
  var query: DatabaseQuery?
  var format: DatabaseNode.JSONForm
  var print: Print?
  /// The JavaScript function that gets the value.
  var callback: String?
  var fileName: String?
  var timeout: Duration?
  var wantsEntityTag: Bool
  var ifMatch: String?
  var ifNoneMatch: String?
  var disablesTriggers: Bool
  var isShallow: Bool
  /// The key after which a shallow read begins.
  ///
  /// Tools send it without quotes and without `orderBy`.
  var shallowStart: String?
  var shallowLimit: Int?

  enum Print {
    case pretty
    case silent
  }

  var path: DatabasePath { location.path }

  init(_ request: Request, _ location: DatabaseLocation) throws(DatabaseError) {
    let parameters = request.query
    self.location = location
    method = try Self.method(request, parameters)
    isShallow = parameters["shallow"] == "true"
    let isRead = method == .get || method == .head
    query = isRead && !isShallow ? try DatabaseQuery.parse(parameters) : nil
    if isRead, isShallow {
      shallowStart = parameters["startAfter"]
      shallowLimit = try DatabaseQuery.count(parameters, "limitToFirst")
    }
    format = parameters["format"] == "export" ? .export : .plain
    print =
      parameters["print"] == "pretty" ? .pretty : parameters["print"] == "silent" ? .silent : nil
    callback = try Self.callback(parameters)
    fileName = parameters["download"].map { $0.filter { $0 >= " " && $0 != "\"" && $0 != "\\" } }
    timeout = try Self.timeout(parameters)
    ifMatch = request.headers[.ifMatch]
    // A client with a condition needs the tag for its next one.
    ifNoneMatch = request.headers[.ifNoneMatch]
    wantsEntityTag =
      ifMatch != nil || ifNoneMatch != nil || request.headers[Self.entityTagHeader] == "true"
    disablesTriggers = parameters["disableTriggers"] == "true"
    guard ifMatch == nil || method == .put || method == .delete else {
      throw .invalid("if-match is supported by PUT and DELETE only")
    }
    guard parameters["writeSizeLimit"].map(Self.writeSizeLimits.contains) ?? true else {
      throw .invalid(
        "writeSizeLimit must be one of \(Self.writeSizeLimits.joined(separator: ", "))"
      )
    }
  }

  private static let entityTagHeader = fieldName("X-Firebase-ETag")
  private static let methodHeader = fieldName("X-HTTP-Method-Override")
  private static let writeSizeLimits = ["tiny", "small", "medium", "large", "unlimited"]
  private static let timeoutMax = Duration.seconds(15 * 60)
  private static let callbackLengthMax = 100

  /// Returns the method, which clients that know only POST write elsewhere.
  private static func method(
    _ request: Request,
    _ parameters: QueryParameters
  ) throws(DatabaseError) -> HTTPRequest.Method {
    let name =
      request.headers[methodHeader] ?? parameters["x-http-method-override"]
      ?? parameters["X-HTTP-Method-Override"]
    guard request.method == .post, let name else { return request.method }
    guard let method = HTTPRequest.Method(name.uppercased()) else {
      throw .invalid("X-HTTP-Method-Override is not a method")
    }
    return method
  }

  /// Returns the name of the function; other texts would be code of somebody else.
  private static func callback(_ parameters: QueryParameters) throws(DatabaseError) -> String? {
    guard let name = parameters["callback"] else { return nil }
    let isName = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    guard isName, (1...callbackLengthMax).contains(name.utf8.count) else {
      throw .invalid("callback must be the name of a function")
    }
    return name
  }

  /// Parses `500ms`, `3s` or `2min`.
  private static func timeout(_ parameters: QueryParameters) throws(DatabaseError) -> Duration? {
    guard let text = parameters["timeout"] else { return nil }
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let millisecondsByUnit = ["ms": 1, "s": 1000, "min": 60_000]
    guard let count = Int(digits), count < 1_000_000_000,
      let unit = millisecondsByUnit[String(text[digits.endIndex...])]
    else { throw .invalid("timeout must be a number with ms, s or min") }
    let timeout = Duration.milliseconds(count * unit)
    guard timeout <= timeoutMax else { throw .invalid("timeout must be at most 15min") }
    return timeout
  }
}

extension Request {
  /// The place that the path names; nil for a path without `.json`.
  ///
  /// Throws for keys that no client may use.
  func location() throws(DatabaseError) -> DatabaseLocation? {
    let suffix = ".json"
    guard path.hasSuffix(suffix) else { return nil }
    guard var segments = pathSegments, let last = segments.popLast() else { throw .invalidPath }
    segments.append(String(last.dropLast(suffix.count)))
    return try DatabaseLocation(keys: segments.filter { !$0.isEmpty })
  }
}
