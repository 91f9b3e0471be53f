import DocumentModel
import Foundation
import Testing

@testable import SecurityRules

@Suite("Cases of Cloud Storage's rules")
struct StorageCaseTests {
  private static let rules = """
    rules_version = '2';
    service firebase.storage {
      match /b/{bucket}/o {
        match /images/{name} {
          allow get: if resource.metadata.owner == request.auth.uid;
          allow list: if request.auth != null;
          allow create: if request.resource.size < 1000
            && request.resource.contentType.matches('image/.*');
          allow update: if request.resource.contentType == resource.contentType
            && request.resource.metadata.owner == resource.metadata.owner;
          allow delete: if resource.timeCreated < request.time;
        }
        match /teams/{team}/{file=**} {
          allow get: if request.auth.uid
            in firestore.get(/databases/(default)/documents/teams/$(team)).data.members;
        }
        match /{path=**} { allow get: if bucket == 'b.example' && resource == null; }
      }
    }
    """

  /// Indicates whether the rules allow the only case of a file, given by its members.
  private static func allows(_ members: String, bucket: String = "other") throws -> Bool {
    let json = """
      {"bucket": "\(bucket)",
       "objects": {"images/a.png": {"contentType": "image/png", "size": 10,
         "metadata": {"owner": "alice"}, "timeCreated": {"$timestamp": "2020-01-01T00:00:00Z"}},
         "teams/t/deep/file": {}},
       "documents": {"teams/t": {"members": ["alice"]}},
       "cases": [{"name": "only", "expect": "allow", \(members)}]}
      """
    let file = try RulesTestFile(json: Array(json.utf8), service: .storage)
    let ruleset = try Ruleset(name: "storage.rules", content: rules, service: .storage)
    return try #require(file.run(ruleset).first).decision.isAllowed
  }

  @Test(
    "Rules see the stored object and the one that is written",
    arguments: [
      (#""method": "get", "path": "images/a.png", "auth": {"uid": "alice"}"#, true),
      (#""method": "get", "path": "images/a.png", "auth": {"uid": "bob"}"#, false),
      (#""method": "list", "path": "images/x", "auth": {"uid": "bob"}"#, true),
      (#""method": "list", "path": "images/x""#, false),
      (
        #""method": "create", "path": "images/b", "object": {"contentType": "image/png", "size": 999}"#,
        true
      ),
      (
        #""method": "create", "path": "images/b", "object": {"contentType": "image/png", "size": 1000}"#,
        false
      ),
      (
        #""method": "create", "path": "images/b", "object": {"contentType": "text/plain", "size": 1}"#,
        false
      ),
      (#""method": "create", "path": "images/b", "object": {"size": 1}"#, false),
      (#""method": "update", "path": "images/a.png", "merge": {"metadata": {"b": "c"}}"#, true),
      (
        #""method": "update", "path": "images/a.png", "object": {"contentType": "image/png"}"#,
        false
      ),
      (#""method": "delete", "path": "images/a.png""#, true),
      (#""method": "delete", "path": "images/a.png", "time": "2019-01-01T00:00:00Z""#, false),
      (#""method": "get", "path": "teams/t/deep/file", "auth": {"uid": "alice"}"#, true),
      (#""method": "get", "path": "teams/t/deep/file", "auth": {"uid": "bob"}"#, false),
      (#""method": "get", "path": "images/a.png", "objects": {"images/a.png": null}"#, false),
    ]
  )
  func requests(members: String, isAllowed: Bool) throws {
    #expect(try Self.allows(members) == isAllowed)
  }

  @Test("Rules see the bucket, and null for an object that is missing")
  func bucket() throws {
    let members = #""method": "get", "path": "elsewhere""#
    #expect(try Self.allows(members, bucket: "b.example"))
    #expect(try !Self.allows(members))
  }

  @Test(
    "A mistake names its member",
    arguments: [
      (#""method": "create", "path": "images/b.png", "data": {}"#, "cases[0].data: is none of"),
      (#""method": "create", "path": "images/b.png""#, "cases[0].object: is missing"),
      (#""method": "create", "path": "images/a.png", "object": {}"#, "is among the objects"),
      (#""method": "update", "path": "images/b", "object": {}"#, "is not among the objects"),
      (#""method": "get", "path": "images//b.png""#, "must be the name of an object"),
      (
        #""method": "create", "path": "b", "object": {"contenttype": "a"}"#,
        "object.contenttype: is none"
      ),
    ]
  )
  func mistakes(members: String, part: String) {
    #expect(performing: { try Self.allows(members) }, throws: { "\($0)".contains(part) })
  }
}
