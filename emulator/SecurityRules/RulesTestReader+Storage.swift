import DocumentModel

/// Cases for Cloud Storage rules, with objects in a bucket instead of documents.
extension RulesTestReader {
  /// The bucket of files that do not name one.
  static let standardBucket = "rules-test.appspot.com"

  static let storageMembers = [
    "name", "expect", "auth", "method", "path", "object", "merge", "time", "objects",
  ]

  /// The members that an object's metadata can have.
  private static let objectMembers: Set<String> = [
    "size", "contentType", "contentDisposition", "contentEncoding", "contentLanguage",
    "cacheControl", "metadata", "md5Hash", "crc32c", "etag", "generation", "metageneration",
    "timeCreated", "updated",
  ]

  /// The members that Cloud Storage sets when it stores an object, and that uploads lack.
  private static let storedMembers: Set<String> = [
    "etag", "generation", "metageneration", "timeCreated", "updated",
  ]

  /// Reads objects by their names in the bucket; nil for JSON null.
  func objects(_ member: RulesTestMember) throws(MistakeError) -> [String: MapValue?] {
    var objects: [String: MapValue?] = [:]
    for (name, member) in try member.members() {
      try Self.checkObjectName(name, member)
      objects.updateValue(member.isNull ? nil : try object(member), forKey: name)
    }
    return objects
  }

  private static func checkObjectName(
    _ name: String,
    _ member: RulesTestMember
  ) throws(MistakeError) {
    guard !name.isEmpty, !name.split(separator: "/", omittingEmptySubsequences: false).contains("")
    else { throw member.mistake("must be the name of an object, such as images/a.png") }
  }

  private func object(_ member: RulesTestMember) throws(MistakeError) -> MapValue {
    for (name, member) in try member.members() where !Self.objectMembers.contains(name) {
      throw member.mistake("is none of \(Self.objectMembers.sorted().joined(separator: ", "))")
    }
    return try member.fields()
  }

  func storageCase(
    _ test: RulesTestCase,
    _ stored: RulesTestStore,
    _ request: RulesRequest
  ) throws(MistakeError) -> RulesRequest {
    var request = request
    let member = try test.required("path")
    let path = try member.text()
    let own = try test["objects"].map(objects) ?? [:]
    request.path =
      (["b", stored.bucket, "o"] + path.split(separator: "/").map(String.init))
      .map { .known($0) }
    guard request.method != .list else {
      try test.refuse(["object", "merge"], for: .list)
      request.resource = .null
      return request
    }
    try Self.checkObjectName(path, member)
    let before = own[path] ?? stored.objects[path]
    request.resource = before.map { value($0, path, stored.bucket, isStored: true) } ?? .null
    guard let after = try self.after(request.method, before, path, test) else { return request }
    request.newResource = value(after, path, stored.bucket, isStored: false)
    return request
  }

  /// Returns the object after the request; nil if there is none.
  private func after(
    _ method: AccessMethod,
    _ before: MapValue?,
    _ path: String,
    _ test: RulesTestCase
  ) throws(MistakeError) -> MapValue? {
    switch method {
    case .create:
      try test.refuse(["merge"], for: .create)
      guard before == nil else {
        throw try test.required("path").mistake(
          "\(path) is among the objects; to write it is an update"
        )
      }
      return try object(try test.required("object"))
    case .update:
      guard let before else {
        throw try test.required("path").mistake(
          "\(path) is not among the objects; to write it is a create"
        )
      }
      switch (test["object"], test["merge"]) {
      case (let whole?, nil): return try object(whole)
      case (nil, let part?): return Self.merged(try object(part), over: before)
      case (nil, nil):
        throw MistakeError(place: "\(test.place).object", reason: "or merge is missing")
      case (_, let part?): throw part.mistake("must not stand beside object")
      }
    default:
      try test.refuse(["object", "merge"], for: method)
      return nil
    }
  }

  /// Returns an object as rules see it; an upload lacks the members that Cloud Storage sets.
  private func value(
    _ object: MapValue,
    _ path: String,
    _ bucket: String,
    isStored: Bool
  ) -> RuleValue {
    var members: MapValue = [
      "name": .string(path), "bucket": .string(bucket), "size": .integer(0),
      "contentType": .string("application/octet-stream"),
    ]
    if isStored {
      members["generation"] = .integer(1)
      members["metageneration"] = .integer(1)
      members["timeCreated"] = .timestamp(time)
      members["updated"] = .timestamp(time)
    }
    for (name, value) in object where isStored || !Self.storedMembers.contains(name) {
      members[name] = value
    }
    return .map(.fields(members))
  }
}

/// The bucket and the objects of a test file.
struct RulesTestStore {
  var bucket = RulesTestReader.standardBucket
  var objects: [String: MapValue] = [:]
}
