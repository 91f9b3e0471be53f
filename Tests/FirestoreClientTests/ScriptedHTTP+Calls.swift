import OutboundHTTP
import TestSupport

extension ScriptedHTTP {
  convenience init(_ first: String, _ others: String...) {
    self.init(([first] + others).map { Self.json($0) })
  }

  static func error(_ status: Int, _ name: String, _ message: String = "m") -> Answer {
    json(
      #"{"error":{"code":\#(status),"message":"\#(message)","status":"\#(name)"}}"#,
      status: status
    )
  }

  /// The method and path of each request.
  var calls: [String] {
    requests.map { request in
      let path = request.url.split(separator: "/", maxSplits: 2).last ?? ""
      return "\(request.method) \(path)"
    }
  }

  var bodies: [String] { requests.map { String(decoding: $0.body, as: UTF8.self) } }

  var authorizations: [String?] { requests.map { $0.headers["Authorization"] } }
}
