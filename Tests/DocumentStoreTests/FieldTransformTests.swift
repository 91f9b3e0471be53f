import DocumentModel
import Testing

@testable import DocumentStore

@Suite("Field transforms")
struct FieldTransformTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var stored: FirestoreValue?
    var kind: FieldTransform.Kind
    var expected: FirestoreValue

    init(_ stored: FirestoreValue?, _ kind: FieldTransform.Kind, _ expected: FirestoreValue) {
      self.stored = stored
      self.kind = kind
      self.expected = expected
    }

    var testDescription: String { "\(String(describing: stored)) \(kind)" }
  }

  @Test(
    "A number is computed from the stored one and sent to the client",
    arguments: [
      Case(nil, .increment(.integer(2)), .integer(2)),
      Case(.string("x"), .increment(.integer(2)), .integer(2)),
      Case(.integer(1), .increment(.integer(2)), .integer(3)),
      Case(.integer(1), .increment(.double(2)), .double(3)),
      Case(.double(1.5), .increment(.integer(2)), .double(3.5)),
      Case(.double(0.5), .increment(.double(0.25)), .double(0.75)),
      Case(.integer(.max), .increment(.integer(1)), .integer(.max)),
      Case(.integer(.min), .increment(.integer(-1)), .integer(.min)),
      Case(.integer(.max), .increment(.integer(-1)), .integer(.max - 1)),
      Case(.double(.infinity), .increment(.integer(1)), .double(.infinity)),
      Case(.double(.nan), .increment(.integer(1)), .double(.nan)),
      Case(nil, .maximum(.integer(2)), .integer(2)),
      Case(.string("x"), .maximum(.integer(2)), .integer(2)),
      Case(.integer(1), .maximum(.double(1.5)), .double(1.5)),
      Case(.integer(2), .maximum(.double(1.5)), .integer(2)),
      Case(.integer(3), .maximum(.double(3)), .integer(3)),
      Case(.double(0), .maximum(.double(-0.0)), .double(0)),
      Case(.double(.nan), .maximum(.integer(1)), .double(.nan)),
      Case(.integer(1), .maximum(.double(.nan)), .double(.nan)),
      Case(nil, .minimum(.integer(2)), .integer(2)),
      Case(.null, .minimum(.integer(2)), .integer(2)),
      Case(.integer(1), .minimum(.double(0.5)), .double(0.5)),
      Case(.integer(1), .minimum(.double(1.5)), .integer(1)),
      Case(.double(3), .minimum(.integer(3)), .double(3)),
      Case(.double(-0.0), .minimum(.integer(0)), .double(-0.0)),
      Case(.integer(1), .minimum(.double(.nan)), .double(.nan)),
      Case(nil, .requestTime, .timestamp(time(5000))),
      Case(.integer(1), .requestTime, .timestamp(time(5000))),
    ]
  )
  func numbers(test: Case) {
    var fields: MapValue = [:]
    fields["f"] = test.stored

    let result = FieldTransform(path("f"), test.kind).apply(to: &fields, requestTime: time(5000))

    #expect(result == test.expected)
    #expect(fields["f"] == test.expected)
  }

  @Test(
    "An array is united with or freed of values, and the client receives null",
    arguments: [
      Case(nil, .appendMissingElements([.integer(1), .integer(1)]), .array([.integer(1)])),
      Case(.string("x"), .appendMissingElements([.null]), .array([.null])),
      Case(.array([.integer(3)]), .appendMissingElements([.double(3)]), .array([.integer(3)])),
      Case(.array([.double(0)]), .appendMissingElements([.double(-0.0)]), .array([.double(0)])),
      Case(
        .array([.double(.nan)]),
        .appendMissingElements([.double(.nan)]),
        .array([.double(.nan)])
      ),
      Case(
        .array([.map(["a": .integer(1)])]),
        .appendMissingElements([.map(["a": .double(1)]), .map(["a": .integer(2)])]),
        .array([.map(["a": .integer(1)]), .map(["a": .integer(2)])])
      ),
      Case(nil, .removeAllFromArray([.integer(1)]), .array([])),
      Case(.integer(1), .removeAllFromArray([.integer(1)]), .array([])),
      Case(
        .array([.integer(1), .double(1), .integer(2), .null]),
        .removeAllFromArray([.integer(1), .null]),
        .array([.integer(2)])
      ),
    ]
  )
  func arrays(test: Case) {
    var fields: MapValue = [:]
    fields["f"] = test.stored

    let result = FieldTransform(path("f"), test.kind).apply(to: &fields, requestTime: time(0))

    #expect(result == .null)
    #expect(fields["f"] == test.expected)
  }

  @Test("A nested transform makes its parents and replaces what is not a map")
  func nestedPaths() {
    var fields: MapValue = ["a": .integer(1), "m": .map(["x": .integer(1)])]

    for path in ["a.b.c", "m.y", "n.z"] {
      _ = FieldTransform(DocumentStoreTests.path(path), .increment(.integer(1)))
        .apply(to: &fields, requestTime: time(0))
    }

    #expect(
      fields == [
        "a": .map(["b": .map(["c": .integer(1)])]),
        "m": .map(["x": .integer(1), "y": .integer(1)]),
        "n": .map(["z": .integer(1)]),
      ]
    )
  }
}
