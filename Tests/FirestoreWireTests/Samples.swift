import DocumentModel
import TestSupport

/// Random values for round-trip tests.
struct Samples {
  var generator: SeededGenerator
  let database = DatabaseName(project: "demo-psst")

  /// Returns a value that Firestore can store; arrays contain no arrays.
  mutating func value(depth: Int = 4, insideArray: Bool = false) -> FirestoreValue {
    switch Int.random(in: 0..<(depth > 0 ? 13 : 9), using: &generator) {
    case 0: .null
    case 1: .boolean(.random(using: &generator))
    case 2:
      .integer([0, -1, .max, .min, 9_007_199_254_740_993].randomElement(using: &generator) ?? 0)
    case 3:
      .double([0, -0.0, .nan, .infinity, 0.1, 1e300].randomElement(using: &generator) ?? 0)
    case 4:
      .timestamp(
        Timestamp(microseconds: .random(in: -62_000_000_000_000_000...0, using: &generator))
      )
    case 5: .string(["", "e\u{301}", "a.b", "😀", "`"].randomElement(using: &generator) ?? "")
    case 6: .bytes((0..<3).map { _ in .random(in: 0...255, using: &generator) })
    case 7: .reference(DocumentName(database: database, path: ResourcePath(["c", "__id7__"])))
    case 8: .geoPoint(GeoPoint(latitude: -90, longitude: .random(in: 0...180, using: &generator)))
    case 9 where !insideArray:
      .array((0..<3).map { _ in value(depth: depth - 1, insideArray: true) })
    case 10: .vector([1, -0.0, .random(in: 0...1, using: &generator)])
    default: .map(fields(depth: depth - 1))
    }
  }

  /// Returns the fields of a map or document.
  mutating func fields(depth: Int = 4) -> MapValue {
    var fields: MapValue = [:]
    for key in ["a", "a.b", "é", "_x"].shuffled(using: &generator).prefix(2) {
      fields[key] = value(depth: depth)
    }
    return fields
  }
}
