import DatabaseModel
import DatabaseRules
import DatabaseTree
import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import NIOCore
import Synchronization

/// What tools read and set: rules, the names of instances, triggers.
extension RealtimeDatabaseService {
  /// The maximum size of rules and of triggers.
  private static let settingsBytesMax = 4 << 20
  /// The rules of an instance that was given none.
  private static let openRules = #"{"rules":{".read":true,".write":true}}"#
  private static let accepted = Response.json(#"{"status":"ok"}"#)

  func rules(_ request: Request, _ instance: DatabaseInstance) async throws -> Response {
    try checkAdmin(request)
    switch request.method {
    case .get:
      guard let rules = instance.rules else { return .json(Self.openRules) }
      return .json(request.query["format"] == "strict" ? rules.strictJSON : rules.source)
    case .put:
      let body = try await request.wholeBody(upTo: Self.settingsBytesMax)
      let rules: DatabaseRuleset
      do {
        rules = try DatabaseRuleset(parsing: String(buffer: body))
      } catch {
        // The line end within the text is production's.
        return Self.error("\(error)\n", status: .badRequest)
      }
      if request.query["dryRun"] != "true" { await instance.setRules(rules) }
      return Self.accepted
    default: return Self.error("Use GET or PUT", status: .methodNotAllowed)
    }
  }

  func databases(_ request: Request) async throws -> Response {
    try checkAdmin(request)
    let objects = try await database.instanceNames().map { name in
      var object = JSONObjectText()
      object.set("name", name)
      return object.bytes
    }
    return .json(ByteBuffer(bytes: JSONObjectText.array(objects)))
  }

  /// Keeps the triggers that Firebase's tools register, whose functions run elsewhere.
  func functionTriggers(_ request: Request) async throws -> Response {
    try checkAdmin(request)
    if request.method == .get { return .json(ByteBuffer(bytes: triggers.json)) }
    let body = Array(buffer: try await request.wholeBody(upTo: Self.settingsBytesMax))
    let new: [[UInt8]]?
    switch request.method {
    case .post: new = JSONObjectText(parsing: body).map { [$0.bytes] }
    // Anything but a list is answered below.
    case .put: new = (try? jsonElements(of: body)) ?? nil
    default: return Self.error("Use GET, POST or PUT", status: .methodNotAllowed)
    }
    guard let new, triggers.add(new, replacesAll: request.method == .put) else {
      throw DatabaseDataError.notJSON
    }
    return Self.accepted
  }
}

/// The triggers of functions that tools have registered.
final class FunctionTriggers: Sendable {
  /// The maximum number of triggers, which is production's number of functions.
  private static let countMax = 1000
  private let triggers = Mutex<[[UInt8]]>([])

  /// Adds triggers; false if there are too many.
  func add(_ new: [[UInt8]], replacesAll: Bool) -> Bool {
    triggers.withLock { triggers in
      let all = replacesAll ? new : triggers + new
      guard all.count <= Self.countMax else { return false }
      triggers = all
      return true
    }
  }

  var json: [UInt8] { JSONObjectText.array(triggers.withLock { $0 }) }
}
