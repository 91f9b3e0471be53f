import DocumentModel
import Foundation
import Testing

@testable import SecurityRules

/// Compares expressions with the results of Firebase's own emulator.
@Suite("Expressions that the official emulator has judged")
struct ExpressionTableTests {
  /// A row of the table: topic, expression, and verdict (allow, deny, error or refused).
  private struct Row: Decodable {
    var topic: String
    var expression: String
    var verdict: String

    init(from decoder: any Decoder) throws {
      var row = try decoder.unkeyedContainer()
      topic = try row.decode(String.self)
      expression = try row.decode(String.self)
      verdict = try row.decode(String.self)
    }
  }

  @Test("Every expression of the table is allowed, false, in error or refused as it is there")
  func table() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "expressions.json")
    let rows = try JSONDecoder().decode([Row].self, from: try Data(contentsOf: file))
    #expect(rows.count > 4000)
    for row in rows {
      let verdict = SampleRequest.verdict(of: row.expression)
      let wanted = Self.departures[row.expression] ?? row.verdict
      #expect(verdict == wanted, "\(row.topic): \(row.expression)")
    }
  }

  /// The deliberate differences from the emulator, with this engine's verdicts.
  private static let departures: [String: String] = [
    // Text is ordered by its UTF-8 bytes, as in queries.
    "'\\uffff' < '😀'": "allow",
    // The emulator rounds the last digit differently.
    "latlng.value(0, 0).distance(latlng.value(0, 1)) == 111195.08372419141": "deny",
    "latlng.value(0, 0).distance(latlng.value(1, 0)) == 111195.08372419141": "deny",
    "latlng.value(0, 0).distance(latlng.value(0, 180)) == 20015115.070354454": "deny",
    "latlng.value(0, 0).distance(latlng.value(90, 0)) == 10007557.535177225": "deny",
    "latlng.value(52.5, 13.4).distance(latlng.value(48.1, 11.5)) == 507481.15390350844": "deny",
    "latlng.value(0, 179).distance(latlng.value(0, -179)) == 222390.1674483819": "deny",
    "latlng.value(-33.8688, 151.2093).distance(latlng.value(51.5074, -0.1278)) == 16993957.466294274":
      "deny",
    "latlng.value(40.7128, -74.006).distance(latlng.value(34.0522, -118.2437)) == 3935751.814445901":
      "deny",
    "latlng.value(0, 0).distance(latlng.value(0, 0.001)) == 111.19508372419142": "deny",
    "latlng.value(90, 0).distance(latlng.value(-90, 0)) == 20015115.070354454": "deny",
    // These members are undocumented.
    "'headers' in request": "deny",
    "request.keys() == ['auth', 'fields', 'headers', 'inTransaction', 'method', 'path', 'time']":
      "deny",
    "request.headers == {}": "error",
    "request.headers.size() == 0": "error",
    "request.inTransaction": "error",
    "request.inTransaction == false": "error",
    "request.fields == null": "error",
    "request.size() == 7": "deny",
    // The emulator also accepts numbers in Java's other formats.
    "int('٣') == 3": "error",
    "float(' 1') == 1.0": "error",
    "float('1f') == 1.0": "error",
    "float('1d') == 1.0": "error",
    "float('0x1p3') == 8.0": "error",
    // Unusual paths: templates, and quotes, operators or spaces inside paths.
    "/a/{x}": "refused",
    "/a/{x}.bind({'x': 'b'}) == /a/b": "refused",
    "/a/{x=**}": "refused",
    "/a/b'c'": "refused",
    "/a/b&c": "refused",
    "path('users/{uid}').bind({}) == /users": "error",
    "path('users/{uid}').bind({'uid': 'x'})['uid'] == 'x'": "error",
    "path('users/{uid}').bind({'uid': 'x'}).uid == 'x'": "error",
    "/a /b": "refused",
    "/a /b == /a/b": "refused",
    "/a/$ (id)": "refused",
    "/a/$ (id) == /a/x": "refused",
    // NaN that is not in a stored document.
    "{'a': resource.data.nan}.diff({'a': resource.data.nan}).changedKeys().size() == 0": "deny",
    "resource.diff(resource).affectedKeys().size() == 0": "deny",
    // The emulator orders `values()` by insertion.
    "{'b': 1, 'a': 2}.values() == [1, 2]": "deny",
    "{'b': 1, 'a': 2}.values() == [2, 1]": "allow",
    // A number directly followed by a letter is rejected.
    "1is int": "refused",
  ]
}
