import DocumentModel
import Foundation
import Testing

@testable import SecurityRules

/// Compares queries under rules with the decisions of Firebase's own emulator.
@Suite("List proofs that the official emulator has judged")
struct ListProofTests {
  private struct Table: Decodable {
    var queries: [StructuredQuery]
    var rules: [Row]
  }

  /// A text of rules, with the indexes of the queries that it allows and denies.
  private struct Row: Decodable {
    var rules: String
    var signedIn: Bool
    var allows: [Int]
    var denies: [Int]
  }

  @Test(
    "A query that finds a document against the rule is refused",
    arguments: [
      // Numbers that are equal in rules and distinct in queries, or the reverse.
      ("resource.data.n != 9007199254740992.0", "NOT_EQUAL", "9007199254740993"),
      ("resource.data.n > 9007199254740993", "GREATER_THAN", "9007199254740992"),
      ("resource.data.n != 9007199254740993", "NOT_EQUAL", "9007199254740993"),
      ("resource.data.n != 9007199254740992.0", "NOT_IN", "[9007199254740993]"),
      // Another field, or none
      ("resource.data.m != 1", "NOT_EQUAL", "1"), ("'m' in resource.data", "EQUAL", "1"),
      ("'n' in resource.data.m", "EQUAL", "1"), ("resource == null", "EQUAL", "1"),
      ("resource.data == null", "EQUAL", "1"), ("resource.data.m != null", "EQUAL", "1"),
      ("resource.data.get('m', 1) == 1", "EQUAL", "1"),
      ("resource.data.get('n', 1) == 1", "GREATER_THAN", "0"),
      ("resource.data.get(['n'], 1) == 1", "GREATER_THAN", "0"),
      // Insufficient bounds
      ("resource.data.n > 4", "GREATER_THAN_OR_EQUAL", "4"),
      ("resource.data.n < 4", "LESS_THAN_OR_EQUAL", "4"),
      ("resource.data.n < 4", "GREATER_THAN", "1"), ("resource.data.n > 4", "LESS_THAN", "9"),
      ("4 > resource.data.n", "GREATER_THAN", "4"), ("4 < resource.data.n", "LESS_THAN", "4"),
      ("4 >= resource.data.n", "GREATER_THAN", "4"), ("resource.data.n != 5", "GREATER_THAN", "4"),
      ("resource.data.n != 4", "LESS_THAN_OR_EQUAL", "4"),
      ("!(resource.data.n > 3)", "LESS_THAN_OR_EQUAL", "4"),
      ("!(resource.data.n >= 4)", "LESS_THAN_OR_EQUAL", "4"),
      ("!(resource.data.n < 5)", "GREATER_THAN_OR_EQUAL", "4"),
      ("!(resource.data.n <= 4)", "GREATER_THAN_OR_EQUAL", "4"),
      ("resource.data.n != 2", "NOT_EQUAL", "1"), ("resource.data.n != 2", "NOT_IN", "[1, 3]"),
      ("resource.data.n == 1", "NOT_EQUAL", "2"), ("resource.data.n > 'a'", "GREATER_THAN", "1"),
      // A list that contains the element may contain others.
      ("resource.data.n.hasAny([2])", "ARRAY_CONTAINS", "1"),
      ("resource.data.n.hasAll([1, 2])", "ARRAY_CONTAINS", "1"),
      ("resource.data.n.hasOnly([1])", "ARRAY_CONTAINS", "1"),
      ("!(2 in resource.data.n)", "ARRAY_CONTAINS", "1"),
      ("1.0 in resource.data.n", "ARRAY_CONTAINS", "1"),
      ("1 in resource.data.n", "EQUAL", "1"), ("resource.data.n == [1]", "ARRAY_CONTAINS", "1"),
      ("resource.data.hasAny(['n'])", "ARRAY_CONTAINS", "'n'"),
      // Neither the document's name nor anything of it outside its data is known.
      ("resource.id != 'x'", "EQUAL", "1"), ("id != 'x'", "EQUAL", "1"),
      ("resource.n == 1", "EQUAL", "1"), ("resource.meta.n == 1", "EQUAL", "1"),
      ("1 in resource.data.n", "NOT_EQUAL", "1"),
      ("resource.data.n > 9007199254740993", "GREATER_THAN", "9007199254740992.0"),
      ("!resource.data.n", "NOT_EQUAL", "true"),
    ]
  )
  func unsound(rule: String, test: String, value: String) throws {
    let json =
      #"{"from": [{"collectionId": "a"}], "where": {"fieldFilter": {"field": "#
      + #"{"fieldPath": "n"}, "op": "\#(test)", "value": \#(Self.json(value))}}}"#
    let query = try JSONDecoder().decode(StructuredQuery.self, from: Data(json.utf8))

    #expect(try !query.isAllowed(by: "match /a/{id} { allow list: if \(rule); }", signedIn: true))
  }

  private static func json(_ value: String) -> String {
    let inner = String(value.dropFirst().dropLast())
    switch value.first {
    case "'": return #"{"stringValue": "\#(inner)"}"#
    case "[":
      let elements = inner.components(separatedBy: ", ").map(json).joined(separator: ", ")
      return #"{"arrayValue": {"values": [\#(elements)]}}"#
    case "t": return #"{"booleanValue": true}"#
    case _ where value.contains("."): return #"{"doubleValue": \#(value)}"#
    default: return #"{"integerValue": "\#(value)"}"#
    }
  }

  @Test("Every query of the table is let pass or refused as it is there")
  func table() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "list_proofs.json")
    let table = try JSONDecoder().decode(Table.self, from: try Data(contentsOf: file))
    var judged = 0
    var departed: Set<String> = []
    for row in table.rules {
      let departures = Self.departures.filter { row.rules.contains($0.rule) }
      for (places, official) in [(row.allows, true), (row.denies, false)] {
        for place in places {
          judged += 1
          let query = table.queries[place]
          let isAllowed = try query.isAllowed(by: row.rules, signedIn: row.signedIn)
          guard isAllowed != official else { continue }
          let departure = departures.first {
            $0.isAllowed == isAllowed && ($0.filter.map(query.text.contains) ?? true)
          }
          if let departure { departed.insert(departure.rule) }
          #expect(departure != nil, "\(row.rules) of \(query.text): \(isAllowed)")
        }
      }
    }
    #expect(judged > 650)
    #expect(departed == Set(Self.departures.map(\.rule)), "a departure is not one any more")
  }

  /// A deliberate difference from the emulator.
  private struct Departure {
    /// A substring of the rule's text.
    var rule: String
    /// A substring of the query's text.
    var filter: String? = nil
    /// This engine's decision.
    var isAllowed: Bool
  }

  private static let departures: [Departure] = [
    // The emulator treats its knowledge of a field as a value that is in no list. This rule then
    // holds for every filter on the field, and documents with exactly that value are found.
    Departure(rule: "!(resource.data.score in [4])", isAllowed: false),
    Departure(rule: "!(resource.data.st in ['blocked'])", isAllowed: false),
    // A field without a filter may exist; the emulator assumes the default.
    Departure(rule: "resource.data.get('x', 1) == 1", isAllowed: false),
    Departure(rule: "resource.data.get('x', 2) == 2", isAllowed: false),
    // Results may have more fields than the filters name; the emulator assumes that they do not.
    Departure(rule: "resource.data.size() == 1", isAllowed: false),
    // This could be proven, but the usual form is `'x' in resource.data`.
    Departure(rule: "resource.data.keys().hasAll(['x'])", isAllowed: false),
    // Values that a filter excludes are as certain as values that it requires.
    Departure(rule: "!(resource.data.score <= 4)", filter: "score GREATER", isAllowed: true),
    Departure(rule: "!(resource.data.st == 'blocked')", filter: "st NOT_", isAllowed: true),
    // Filters and rules order integers and doubles by value: a number above 4.0 is above 4.
    Departure(rule: "4 < resource.data.score", filter: "4.", isAllowed: true),
    Departure(rule: "resource.data.score > 4", filter: "4.", isAllowed: true),
    Departure(rule: "resource.data.score >= 4", filter: "4.", isAllowed: true),
    Departure(rule: "resource.data.score != 4", filter: "4.", isAllowed: true),
    // Only IS_NULL matches null, so this query finds nothing.
    Departure(rule: "resource.data.score != 4", filter: "EQUAL null", isAllowed: true),
  ]
}
