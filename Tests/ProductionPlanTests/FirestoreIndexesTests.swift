import Foundation
import Testing

@testable import ProductionPlan

@Suite("Firestore indexes")
struct FirestoreIndexesTests {
  /// Reads one composite index with one field, and one override with one index.
  private func read(
    scope: String = "COLLECTION",
    kind: String = #""order": "ASCENDING""#,
    path: String = "a",
    group: String = "g"
  ) throws(PlanError) -> FirestoreIndexes {
    let index = #"{"collectionGroup": "\#(group)", "queryScope": "\#(scope)","#
    let json = """
      {"indexes": [\(index) "fields": [{"fieldPath": "\(path)", \(kind)}]}],
       "fieldOverrides": [{"collectionGroup": "\(group)", "fieldPath": "\(path)",
         "indexes": [{"queryScope": "\(scope)", \(kind)}]}]}
      """
    return try FirestoreIndexes(json: Data(json.utf8), file: "my.indexes.json")
  }

  @Test(
    "The scopes of Firestore are read",
    arguments: ["COLLECTION", "COLLECTION_GROUP", "COLLECTION_RECURSIVE"]
  )
  func scope(scope: String) throws {
    #expect(try read(scope: scope).indexes.map(\.queryScope) == [scope])
  }

  @Test(
    "The kinds of Firestore are read",
    arguments: [
      #""order": "ASCENDING""#, #""order": "DESCENDING""#, #""arrayConfig": "CONTAINS""#,
    ]
  )
  func kind(kind: String) throws {
    #expect(try read(kind: kind).fieldOverrides.count == 1)
  }

  @Test(
    "Another value is refused, with the file's name and what to write",
    arguments: [
      ("COLLECTION$(touch x)", "\"order\": \"ASCENDING\"", "a", "g", "COLLECTION_GROUP or"),
      ("collection", "\"order\": \"ASCENDING\"", "a", "g", "COLLECTION_GROUP or"),
      ("COLLECTION", "\"order\": \"UP\"", "a", "g", "ASCENDING or DESCENDING"),
      ("COLLECTION", "\"arrayConfig\": \"`id`\"", "a", "g", "give CONTAINS"),
      ("COLLECTION", "\"order\": null", "a", "g", "exactly one"),
      (
        "COLLECTION", "\"order\": \"ASCENDING\", \"arrayConfig\": \"CONTAINS\"", "a", "g",
        "exactly one"
      ),
      ("COLLECTION", "\"vectorConfig\": {\"dimension\": 0}", "a", "g", "1 to 2048"),
      ("COLLECTION", "\"order\": \"ASCENDING\"", "--project=x", "g", "backticks"),
      ("COLLECTION", "\"order\": \"ASCENDING\"", "a", "x/y", "collectionGroup"),
      ("COLLECTION", "\"order\": 1", "a", "g", "not a file of indexes"),
    ]
  )
  func otherValue(scope: String, kind: String, path: String, group: String, words: String) {
    let error = #expect(throws: PlanError.self) {
      try read(scope: scope, kind: kind, path: path, group: group)
    }

    #expect(error?.description.hasPrefix("my.indexes.json") == true)
    #expect(error?.description.contains(words) == true)
  }

  @Test("A shell reads each value of an index as one word, even one that was not checked")
  func injection() throws {
    let hostile = "X$(touch x)`id`'\"; touch y"
    let indexes = FirestoreIndexes(
      indexes: [
        .init(
          collectionGroup: hostile,
          queryScope: hostile,
          fields: [
            .init(fieldPath: hostile, order: hostile), .init(fieldPath: "a", arrayConfig: hostile),
          ]
        )
      ],
      fieldOverrides: [
        .init(collectionGroup: hostile, fieldPath: hostile, ttl: true, indexes: []),
        .init(
          collectionGroup: hostile,
          fieldPath: "b",
          indexes: [.init(order: hostile, queryScope: hostile)]
        ),
        .init(collectionGroup: "c", fieldPath: "d", indexes: [.init(arrayConfig: hostile)]),
      ]
    )
    let plan = try CloudPlan(functions: ["f": callable()], settings: .init(indexes: indexes))
    let script = GcloudScripts(plan: plan).indexes

    // Outside of single quotes, nothing of the author's is left but plain words.
    let unquoted = script.replacing("\\'", with: "").replacing(/'[^']*'/, with: "")
    for part in ["$(", "`", ";"] { #expect(!unquoted.contains(part), "\(unquoted)") }
  }
}
