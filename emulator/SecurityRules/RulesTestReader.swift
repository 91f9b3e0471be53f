import DocumentModel
import JSONText

/// The reader of test files.
struct RulesTestReader {
  typealias MistakeError = RulesTestFile.MistakeError

  /// The time of cases that do not set one.
  let time: Timestamp
  /// The service whose rules the cases test.
  var service = Ruleset.Service.firestore

  func cases(_ json: [UInt8]) throws(MistakeError) -> [RulesTestFile.Case] {
    guard json.count <= RulesTestFile.bytesMax else {
      throw MistakeError(
        place: "",
        reason: "a file of cases can have at most \(RulesTestFile.bytesMax) bytes"
      )
    }
    let isStorage = service == .storage
    let file = try RulesTestMember(json: json).object(
      isStorage ? ["bucket", "objects", "documents", "cases"] : ["documents", "cases"]
    )
    let stored = try file["documents"].map(documents) ?? [:]
    for (path, fields) in stored where fields == nil {
      throw MistakeError(place: "documents[\"\(path)\"]", reason: "must be an object")
    }
    var store = RulesTestStore()
    if let bucket = file["bucket"] { store.bucket = try bucket.text() }
    let objects = try file["objects"].map(self.objects) ?? [:]
    for (name, object) in objects where object == nil {
      throw MistakeError(place: "objects[\"\(name)\"]", reason: "must be an object")
    }
    store.objects = objects.compactMapValues(\.self)
    guard let list = file["cases"] else { throw MistakeError(place: "cases", reason: "is missing") }
    var cases: [RulesTestFile.Case] = []
    for member in try list.list() {
      cases.append(try self.case(member, stored.compactMapValues(\.self), store))
    }
    return cases
  }

  private static let members = [
    "name", "expect", "auth", "method", "path", "data", "merge", "query", "time", "documents",
    "after",
  ]

  /// Reads one case; a mistake in it contains the case's name.
  private func `case`(
    _ member: RulesTestMember,
    _ stored: [ResourcePath: MapValue],
    _ store: RulesTestStore
  ) throws(MistakeError) -> RulesTestFile.Case {
    let known = service == .storage ? Self.storageMembers : Self.members
    let test = RulesTestCase(place: member.place, members: try member.object(known))
    let name = try test.required("name").text()
    do throws(MistakeError) { return try self.case(test, name, stored, store) } catch {
      throw MistakeError(place: error.place, reason: error.reason, caseName: name)
    }
  }

  private func `case`(
    _ test: RulesTestCase,
    _ name: String,
    _ stored: [ResourcePath: MapValue],
    _ store: RulesTestStore
  ) throws(MistakeError) -> RulesTestFile.Case {
    let method = try test.required("method").word(AccessMethod.self)
    let own = try test["documents"].map(documents) ?? [:]
    var documents = RulesTestFile.Documents(stored: stored, own: own)
    var request = RulesRequest(
      method: method,
      path: [],
      time: RuleTimestamp(try test["time"].map(timestamp) ?? time),
      auth: try test["auth"].map(auth) ?? .null
    )
    if service == .storage {
      request = try storageCase(test, store, request)
    } else if method == .list {
      try test.refuse(["data", "merge", "after"], for: method)
      try fill(&request, query: test)
    } else {
      try test.refuse(method == .get ? ["query", "after"] : ["query"], for: method)
      try fill(&request, &documents, document: test)
    }
    return RulesTestFile.Case(
      name: name,
      expected: try test.required("expect").word(RulesTestFile.Expectation.self),
      path: try test.required("path").text(),
      request: request,
      documents: documents,
      isBatch: test["after"] != nil
    )
  }

  private func timestamp(_ member: RulesTestMember) throws(MistakeError) -> Timestamp {
    try member.timestamp()
  }

  // MARK: Documents

  /// Reads documents by path; nil for JSON null.
  private func documents(
    _ member: RulesTestMember
  ) throws(MistakeError) -> [ResourcePath: MapValue?] {
    var documents: [ResourcePath: MapValue?] = [:]
    for (name, member) in try member.members() {
      let path = try member.path(name)
      guard path.isDocument else {
        throw member.mistake("is not the path of a document, such as users/alice")
      }
      documents.updateValue(member.isNull ? nil : try member.fields(), forKey: path)
    }
    return documents
  }

  private func fill(
    _ request: inout RulesRequest,
    _ documents: inout RulesTestFile.Documents,
    document test: RulesTestCase
  ) throws(MistakeError) {
    let member = try test.required("path")
    let path = try member.path(try member.text())
    guard path.isDocument else {
      throw member.mistake("must be the path of a document, such as users/alice")
    }
    let before = documents.fields(path, after: false)
    request.path = RulesTestReader.root + path.segments.map { .known($0) }
    request.resource = documents.resource(path, after: false) ?? .null
    documents.written = try test["after"].map(self.documents) ?? [:]
    if let after = test["after"], documents.written[path] != nil {
      throw after.mistake("must not tell of \(path), which the case writes itself")
    }
    switch request.method {
    case .create:
      try test.refuse(["merge"], for: .create)
      guard before == nil else {
        throw member.mistake("\(path) is among the documents; to write it is an update")
      }
      documents.written.updateValue(try test.required("data").fields(), forKey: path)
    case .update:
      guard let before else {
        throw member.mistake("\(path) is not among the documents; to write it is a create")
      }
      documents.written.updateValue(try updated(before, test), forKey: path)
    default:
      try test.refuse(["data", "merge"], for: request.method)
      if request.method == .delete { documents.written.updateValue(nil, forKey: path) }
    }
    if request.method == .create || request.method == .update {
      request.newResource = documents.resource(path, after: true)
    }
  }

  private func updated(_ before: MapValue, _ test: RulesTestCase) throws(MistakeError) -> MapValue {
    switch (test["data"], test["merge"]) {
    case (let data?, nil): return try data.fields()
    case (nil, let merge?): return Self.merged(try merge.fields(), over: before)
    case (nil, nil): throw MistakeError(place: "\(test.place).data", reason: "or merge is missing")
    case (_, let merge?): throw merge.mistake("must not stand beside data")
    }
  }

  /// Merges fields as `set` with `merge` does: maps are merged, other values are replaced.
  static func merged(_ fields: MapValue, over stored: MapValue) -> MapValue {
    var result = stored
    for (key, value) in fields {
      if case .map(let inner) = value, !inner.isEmpty, case .map(let old) = stored[key] {
        result[key] = .map(merged(inner, over: old))
      } else {
        result[key] = value
      }
    }
    return result
  }

  private static let root: [RulesRequest.PathStep] = [
    .known("databases"), .known(RulesTestFile.database.database), .known("documents"),
  ]

  // MARK: Users

  /// Reads a user.
  ///
  /// The token has the default members that Firebase's own test library sets.
  private func auth(_ member: RulesTestMember) throws(MistakeError) -> RuleValue {
    if member.isNull { return .null }
    let members = try member.object(["uid", "token"])
    guard let uid = members["uid"] else {
      throw MistakeError(place: "\(member.place).uid", reason: "is missing")
    }
    let id = try uid.text()
    var token: MapValue = [
      "sub": .string(id), "user_id": .string(id),
      "firebase": .map(["sign_in_provider": .string("custom"), "identities": .map([:])]),
    ]
    for (key, value) in try members["token"]?.fields() ?? [:] { token[key] = value }
    return .map(.entries(["uid": .string(id), "token": .map(.fields(token))]))
  }

  // MARK: Queries

  private func fill(_ request: inout RulesRequest, query test: RulesTestCase) throws(MistakeError) {
    let member = try test.required("path")
    let path = try member.path(try member.text())
    guard path.isCollection else {
      throw member.mistake("must be the path of a collection, such as users")
    }
    let query =
      try test["query"]?.object(["where", "orderBy", "limit", "offset", "collectionGroup"])
      ?? [:]
    var steps = path.segments.map { RulesRequest.PathStep.known($0) }
    if try query["collectionGroup"]?.flag() == true {
      steps.insert(.anyStretch, at: steps.count - 1)
    }
    request.path = RulesTestReader.root + steps + [.unknown]
    request.resource = .queried(QueriedPart(names: []))
    request.query = .map(
      .entries([
        "limit": try query["limit"]?.count(from: 1) ?? .null,
        "offset": try query["offset"]?.count(from: 0) ?? .int(0),
        "orderBy": .map(.entries(try query["orderBy"].map(orders) ?? [:])),
      ])
    )
    request.constraints = try query["where"].map(constraints) ?? [QueryConstraints([])]
  }

  private func orders(_ member: RulesTestMember) throws(MistakeError) -> [String: RuleValue] {
    var orders: [String: RuleValue] = [:]
    for order in try member.list() {
      let parts = try order.list()
      guard let field = parts.first, parts.count <= 2 else {
        throw order.mistake("must be a field and asc or desc, such as [\"score\", \"desc\"]")
      }
      let path = try field.fieldPath()
      let direction = try parts.dropFirst().first?.word(Direction.self) ?? .asc
      // A query's map does not contain the order of the document names.
      if !path.isDocumentID { orders[path.description] = .string(direction.rawValue.uppercased()) }
    }
    return orders
  }

  private enum Direction: String, CaseIterable { case asc, desc }

  /// The maximum number of alternatives of a filter, as in Firestore.
  private static let alternativesMax = 30

  private func constraints(_ member: RulesTestMember) throws(MistakeError) -> [QueryConstraints] {
    var alternatives: [[QueryConstraints.Predicate]] = [[]]
    for filter in try member.list() {
      let choices = try predicates(filter)
      alternatives = alternatives.flatMap { known in choices.map { known + [$0] } }
      guard alternatives.count <= Self.alternativesMax else {
        throw filter.mistake(
          "makes more than \(Self.alternativesMax) alternatives of the filter"
        )
      }
    }
    return alternatives.map { QueryConstraints($0) }
  }

  /// The operators of filters, in the spelling of the clients.
  private enum Operator: String, CaseIterable {
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case isIn = "in"
    case notIn = "not-in"
    case contains = "array-contains"
    case containsAny = "array-contains-any"
  }

  /// Returns the predicates of one filter, one for each of its alternatives.
  private func predicates(
    _ filter: RulesTestMember
  ) throws(MistakeError) -> [QueryConstraints.Predicate] {
    let parts = try filter.list()
    guard parts.count == 3 else {
      throw filter.mistake(
        "must be a field, an operator and a value, such as [\"owner\", \"==\", \"alice\"]"
      )
    }
    let path = try parts[0].fieldPath()
    guard !path.isDocumentID else { throw parts[0].mistake("filters of __name__ are not known") }
    func predicate(
      _ test: QueryConstraints.Predicate.Test,
      _ value: RuleValue
    ) -> QueryConstraints.Predicate {
      QueryConstraints.Predicate(path: path.segments, test: test, value: value)
    }
    func one(_ test: QueryConstraints.Predicate.Test) throws(MistakeError) -> [QueryConstraints
      .Predicate]
    {
      [predicate(test, RuleValue(try parts[2].value()))]
    }
    switch try parts[1].word(Operator.self) {
    case .equal: return try one(.equal)
    case .notEqual: return try one(.notEqual)
    case .less: return try one(.less)
    case .lessOrEqual: return try one(.lessOrEqual)
    case .greater: return try one(.greater)
    case .greaterOrEqual: return try one(.greaterOrEqual)
    case .contains: return try one(.contains)
    case .isIn: return try values(parts[2]).map { predicate(.equal, $0) }
    case .containsAny: return try values(parts[2]).map { predicate(.contains, $0) }
    case .notIn: return [predicate(.notIn, .list(try values(parts[2])))]
    }
  }

  private func values(_ member: RulesTestMember) throws(MistakeError) -> [RuleValue] {
    var values: [RuleValue] = []
    for element in try member.list() { values.append(RuleValue(try element.value())) }
    guard !values.isEmpty else { throw member.mistake("must have a value at least") }
    return values
  }
}

/// The members of one case.
struct RulesTestCase {
  let place: String
  let members: [String: RulesTestMember]

  subscript(name: String) -> RulesTestMember? { members[name] }

  func required(_ name: String) throws(RulesTestFile.MistakeError) -> RulesTestMember {
    guard let member = members[name] else {
      throw RulesTestFile.MistakeError(place: "\(place).\(name)", reason: "is missing")
    }
    return member
  }

  func refuse(
    _ names: [String],
    for method: AccessMethod
  ) throws(RulesTestFile.MistakeError) {
    for name in names {
      if let member = members[name] {
        throw member.mistake("has no meaning for \(method.rawValue)")
      }
    }
  }
}
