import DatabaseModel
import JSONText

/// The reader of test files: a value of the file with its place, which error messages name.
struct DatabaseRulesTestReader {
  typealias MistakeError = DatabaseRulesTestFile.MistakeError

  private let place: String
  private let json: JSONTree

  static func cases(_ text: [UInt8]) throws(MistakeError) -> [DatabaseRulesTestFile.Case] {
    guard text.count <= DatabaseRulesTestFile.bytesMax else {
      throw MistakeError(
        place: "",
        reason: "a file of cases can have at most \(DatabaseRulesTestFile.bytesMax) bytes"
      )
    }
    let json: JSONTree
    do throws(JSONSyntaxError) { json = try JSONTree.parse(text) } catch {
      throw MistakeError(place: "", reason: "is not JSON: \(error.explanation(in: text))")
    }
    let file = DatabaseRulesTestReader(place: "", json: json)
    let members = try file.members(["data", "cases"])
    let data = try members["data"]?.node(atMilliseconds: 0) ?? .empty
    var cases: [DatabaseRulesTestFile.Case] = []
    for element in try file.required(members["cases"], "cases").list() {
      cases.append(try element.test(data))
    }
    return cases
  }

  // MARK: - Cases

  private static let caseMembers = [
    "name", "expect", "auth", "method", "path", "value", "data", "query", "time",
  ]

  private func test(_ stored: DatabaseNode) throws(MistakeError) -> DatabaseRulesTestFile.Case {
    let members = try members(Self.caseMembers)
    let expected = try required(members["expect"], "expect").word(["allow", "deny"])
    let method = try required(members["method"], "method").word(["read", "write", "update"])
    let path = try required(members["path"], "path").path()
    let now = try members["time"]?.milliseconds() ?? DatabaseRulesTestFile.standardTime
    var test = DatabaseRulesTestFile.Case(
      name: try required(members["name"], "name").text(),
      isExpectedToAllow: expected == "allow",
      auth: try members["auth"]?.auth() ?? .null,
      nowMilliseconds: now,
      data: try members["data"]?.node(atMilliseconds: now) ?? stored,
      paths: [path]
    )
    if let other = members[method == "read" ? "value" : "query"] {
      throw other.mistake("has no meaning for \(method)")
    }
    if method == "read" {
      test.query = try members["query"]?.query()
      return test
    }
    let value = try required(members["value"], "value")
    var changes = [(path: path, value: value)]
    if method == "update" {
      changes = []
      for (key, member) in try value.members() {
        guard let below = DatabasePath(parsing: key), !below.isRoot else {
          throw member.mistake("is not a path below the node")
        }
        changes.append((path.appending(below), member))
      }
      test.paths = changes.map(\.path)
    }
    var newData = test.data
    for change in changes {
      newData.set(
        try change.value.node(atMilliseconds: now, over: test.data.node(at: change.path)),
        at: change.path
      )
    }
    test.newData = newData
    return test
  }

  /// Reads a user, whose token has what tokens of all users have.
  private func auth() throws(MistakeError) -> JSONValue {
    if case .null = json { return .null }
    let members = try members(["uid", "provider", "token"])
    let uid = try required(members["uid"], "uid").text()
    let provider = try members["provider"]?.text() ?? "custom"
    var token: [String: JSONValue] = [
      "sub": .string(uid), "user_id": .string(uid),
      "firebase": ["sign_in_provider": .string(provider), "identities": [:]],
    ]
    for (name, member) in try members["token"]?.members() ?? [] { token[name] = member.json.value }
    return ["uid": .string(uid), "provider": .string(provider), "token": .object(token)]
  }

  private static let orders: [String: DatabaseQuery.Order] = [
    "$key": .key, "$value": .value, "$priority": .priority,
  ]

  private func query() throws(MistakeError) -> DatabaseQuery {
    let members = try members([
      "orderBy", "startAt", "startAfter", "endAt", "endBefore", "equalTo", "limitToFirst",
      "limitToLast",
    ])
    var query = DatabaseQuery()
    if let order = members["orderBy"] {
      let text = try order.text()
      if let known = Self.orders[text] {
        query.order = known
      } else {
        query.order = .child(try order.path())
      }
    }
    let isByKey = query.order == .key
    query.start = try members["startAt"]?.bound(isByKey)
    query.end = try members["endAt"]?.bound(isByKey)
    if let member = members["startAfter"] {
      query.start = try member.bound(isByKey)
      query.start?.isInclusive = false
    }
    if let member = members["endBefore"] {
      query.end = try member.bound(isByKey)
      query.end?.isInclusive = false
    }
    if let member = members["equalTo"] {
      query.start = try member.bound(isByKey)
      query.end = query.start
    }
    for name in ["limitToFirst", "limitToLast"] {
      guard let member = members[name] else { continue }
      guard case .number(.integer(let count)) = member.json,
        (1...Int64(DatabaseQuery.limitMax)).contains(count), query.limit == nil
      else { throw member.mistake("must be a whole number from 1 on, and the only limit") }
      query.limit = DatabaseQuery.Limit(Int(count), isFromEnd: name == "limitToLast")
    }
    return query
  }

  private func bound(_ isByKey: Bool) throws(MistakeError) -> DatabaseQuery.Bound {
    switch json {
    case .string(let text) where isByKey:
      return DatabaseQuery.Bound(.null, key: .key(DatabaseKey(text)))
    case _ where isByKey: throw mistake("must be a text, as keys are")
    case .null: return DatabaseQuery.Bound(.null)
    case .boolean(let flag): return DatabaseQuery.Bound(.leaf(.boolean(flag)))
    case .number(let number): return DatabaseQuery.Bound(.leaf(.number(number.double)))
    case .string(let text): return DatabaseQuery.Bound(.leaf(.string(text)))
    default: throw mistake("must be a value without members")
    }
  }

  // MARK: - Values

  private func mistake(_ reason: String) -> MistakeError {
    MistakeError(place: place, reason: reason)
  }

  private func required(
    _ member: DatabaseRulesTestReader?,
    _ name: String
  ) throws(MistakeError) -> DatabaseRulesTestReader {
    guard let member else {
      throw MistakeError(place: place.isEmpty ? name : "\(place).\(name)", reason: "is missing")
    }
    return member
  }

  private func members() throws(MistakeError) -> [(name: String, member: DatabaseRulesTestReader)] {
    guard case .object(let members) = json else {
      throw mistake("must be an object, and is \(json.kind)")
    }
    return members.map { name, json in
      let inner = place.isEmpty ? name : "\(place).\(name)"
      return (name, DatabaseRulesTestReader(place: inner, json: json))
    }
  }

  /// Returns the members of an object; throws if it has a member that is not in `known`.
  private func members(
    _ known: [String]
  ) throws(MistakeError) -> [String: DatabaseRulesTestReader] {
    var result: [String: DatabaseRulesTestReader] = [:]
    for (name, member) in try members() {
      guard known.contains(name) else {
        throw member.mistake("is none of \(known.joined(separator: ", "))")
      }
      guard result.updateValue(member, forKey: name) == nil else {
        throw member.mistake("is given twice")
      }
    }
    return result
  }

  private func list() throws(MistakeError) -> [DatabaseRulesTestReader] {
    guard case .array(let elements) = json else {
      throw mistake("must be a list, and is \(json.kind)")
    }
    return elements.enumerated().map {
      DatabaseRulesTestReader(place: "\(place)[\($0)]", json: $1)
    }
  }

  private func text() throws(MistakeError) -> String {
    guard case .string(let text) = json, !text.isEmpty else {
      throw mistake("must be a text that is not empty, and is \(json.kind)")
    }
    return text
  }

  private func word(_ words: [String]) throws(MistakeError) -> String {
    guard case .string(let text) = json, words.contains(text) else {
      throw mistake("must be one of \(words.joined(separator: ", "))")
    }
    return text
  }

  private func path() throws(MistakeError) -> DatabasePath {
    guard let path = DatabasePath(parsing: try text()) else {
      throw mistake("is not a path such as /chats/1")
    }
    return path
  }

  private func milliseconds() throws(MistakeError) -> Int64 {
    guard case .number(.integer(let milliseconds)) = json else {
      throw mistake("must be a time in milliseconds since 1970")
    }
    return milliseconds
  }

  private func node(
    atMilliseconds now: Int64,
    over stored: DatabaseNode = .empty
  ) throws(MistakeError) -> DatabaseNode {
    do throws(DatabaseDataError) {
      return try DatabaseInput(json).resolved(atMilliseconds: now) { path, isPriority in
        let node = stored.node(at: path)
        return isPriority ? node.priority : node.leaf
      }
    } catch {
      throw mistake("cannot be stored: \(error.message)")
    }
  }
}

extension JSONTree {
  fileprivate var value: JSONValue {
    switch self {
    case .null: .null
    case .boolean(let flag): .boolean(flag)
    case .number(let number): .number(number.double)
    case .string(let text): .string(text)
    case .array(let elements): .array(elements.map(\.value))
    case .object(let members):
      .object(Dictionary(members.map { ($0, $1.value) }) { _, last in last })
    }
  }
}
