import DocumentModel
import StatusCodes
import Testing

@testable import DocumentStore

@Suite("Write validation")
struct WriteValidationTests {
  struct Refusal: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var write: Write
    var message: String

    init(_ title: String, _ write: Write, _ message: String) {
      testDescription = title
      self.write = write
      self.message = message
    }
  }

  static func nested(_ depth: Int) -> FirestoreValue {
    depth == 0 ? .string("x") : .map(["m": nested(depth - 1)])
  }

  static let accepted: [(String, Write)] = [
    ("four underscores", set("c/____")),
    ("numeric id", set("c/__id-7__")),
    ("id of 1500 bytes", set("c/" + String(repeating: "x", count: 1500))),
    (
      "path of 6 KiB",
      set(longPath(125))
    ),
    ("100 collections", set(Array(repeating: "x", count: 200).joined(separator: "/"))),
    ("depth 20", set("c/d", ["a": nested(20)])),
    ("empty fields", set("c/d")),
    ("field name of 1500 bytes", set("c/d", [String(repeating: "x", count: 1500): .null])),
    ("underscored field", set("c/d", ["__a": .null, "a__": .null, "___": .null])),
    (
      "string of 1 048 487 bytes",
      set("c/d", ["f": .string(String(repeating: "x", count: 1_048_487))])
    ),
    ("vector of 2048", set("c/d", ["v": .vector(Array(repeating: 1, count: 2048))])),
    ("vector in a map in an array", set("c/d", ["a": .array([.map(["b": .vector([1])])])])),
    ("vector of infinities", set("c/d", ["v": .vector([.infinity, -.infinity])])),
    // The official emulator accepts these too.
    (
      "vectors for an array transform",
      set(
        "c/d",
        mask: [],
        transforms: [FieldTransform(path("a"), .appendMissingElements([.vector([1, .nan])]))]
      )
    ),
    ("array in map in array", set("c/d", ["a": .array([.map(["b": .array([])])])])),
    ("corner of the globe", set("c/d", ["g": .geoPoint(GeoPoint(latitude: -90, longitude: 180))])),
    ("mask of 20 segments", set("c/d", mask: [repeated("x", 20)])),
    ("verify with a precondition", verify("c/d", if: .exists(true))),
    ("mask of the name", set("c/d", mask: ["__name__"])),
    (
      "transform at depth 20",
      set("c/d", mask: [], transforms: [FieldTransform(path(repeated("x", 21)), .requestTime)])
    ),
    ("500 transforms", set("c/d", mask: [], transforms: transforms(500))),
  ]

  static let refused = [
    Refusal(
      "path above 6 KiB",
      set(longPath(126)),
      "The document's path has 6145 bytes; it may have 6144."
    ),
    Refusal(
      "reserved document id",
      set("c/__x__"),
      "Resource id \"__x__\" is invalid because it is reserved."
    ),
    Refusal(
      "five underscores",
      set("c/_____"),
      "Resource id \"_____\" is invalid because it is reserved."
    ),
    Refusal(
      "reserved collection id",
      set("__c__/d"),
      "Collection id \"__c__\" is invalid because it is reserved."
    ),
    Refusal(
      "numeric collection id",
      set("__id7__/d"),
      "Collection id \"__id7__\" is invalid because it is reserved."
    ),
    Refusal(
      "dot",
      set("c/."),
      "Document name \"\(name("c/."))\" contains a resource id \".\"."
    ),
    Refusal(
      "two dots in the middle",
      set("c/../e/f"),
      "Document name \"\(name("c/../e/f"))\" contains a resource id \"..\"."
    ),
    Refusal("empty id", set("c/"), "Document name \"\(name("c/"))\" has an empty path element."),
    Refusal(
      "odd path",
      set("c"),
      "Document name \"\(name("c"))\" must have an even number of path elements after \"documents\"."
    ),
    Refusal(
      "long id",
      set("c/" + String(repeating: "x", count: 1501)),
      "The key path element name is longer than 1500 bytes."
    ),
    Refusal(
      "long collection id",
      set(String(repeating: "x", count: 1501) + "/d"),
      "The key path element kind is longer than 1500 bytes."
    ),
    Refusal(
      "101 collections",
      set(Array(repeating: "x", count: 202).joined(separator: "/")),
      "Key path is too long. Cannot exceed 100 elements."
    ),
    Refusal("reserved field", set("c/d", ["__f__": .null]), "field name __f__ is reserved"),
    Refusal(
      "reserved nested field",
      set("c/d", ["a": .map(["__f__": .null])]),
      "field name '__f__' is reserved."
    ),
    Refusal("empty field", set("c/d", ["": .null]), "The property.name is the empty string."),
    Refusal(
      "long field name",
      set("c/d", [String(repeating: "x", count: 1501): .null]),
      "The property.name is longer than 1500 bytes."
    ),
    Refusal(
      "long nested field name",
      set("c/d", ["a": .map([String(repeating: "x", count: 1501): .null])]),
      "Property a contains an invalid nested entity."
    ),
    Refusal(
      "stray __type__",
      set("c/d", ["a": .map(["__type__": .string("x")])]),
      "Property a contains an invalid nested entity."
    ),
    Refusal(
      "depth 21",
      set("c/d", ["a": nested(21)]),
      "Property a contains an invalid nested entity."
    ),
    Refusal(
      "array in array",
      set("c/d", ["a": .array([.array([])])]),
      "Nested arrays are not allowed"
    ),
    Refusal(
      "array in array of a transform",
      set(
        "c/d",
        mask: [],
        transforms: [FieldTransform(path("a"), .appendMissingElements([.array([])]))]
      ),
      "Nested arrays are not allowed"
    ),
    Refusal(
      "string of 1 048 488 bytes",
      set("c/d", ["f": .string(String(repeating: "x", count: 1_048_488))]),
      "The value of property \"f\" is longer than 1048487 bytes."
    ),
    Refusal(
      "nested byte string of 1 048 488 bytes",
      set("c/d", ["f": .map(["g": .bytes(Array(repeating: 0, count: 1_048_488))])]),
      "Property f contains an invalid nested entity."
    ),
    Refusal(
      "latitude",
      set("c/d", ["g": .geoPoint(GeoPoint(latitude: 91, longitude: 0))]),
      "Geo point latitude '91.0' outside permitted range -90.0 to 90.0."
    ),
    Refusal(
      "longitude",
      set("c/d", ["g": .geoPoint(GeoPoint(latitude: 1, longitude: -181))]),
      "Geo point longitude '-181.0' outside permitted range -180.0 to 180.0."
    ),
    Refusal(
      "NaN latitude",
      set("c/d", ["g": .geoPoint(GeoPoint(latitude: .nan, longitude: 0))]),
      "Geo point latitude 'nan' outside permitted range -90.0 to 90.0."
    ),
    Refusal(
      "empty vector",
      set("c/d", ["v": .vector([])]),
      "Cannot have a zero length vector."
    ),
    Refusal(
      "vector with NaN",
      set("c/d", ["m": .map(["v": .vector([1, .nan])])]),
      "Vector cannot contain NaN values."
    ),
    Refusal(
      "vector in an array",
      set("c/d", ["a": .array([.vector([1])])]),
      "Cannot convert a vector value in an array value."
    ),
    Refusal(
      "vector of 2049",
      set("c/d", ["v": .vector(Array(repeating: 1, count: 2049))]),
      "Vectors must be at most 2048 dimensions."
    ),
    Refusal(
      "increment by text",
      set("c/d", mask: [], transforms: [FieldTransform(path("a"), .increment(.string("x")))]),
      "Input must be int64 or double."
    ),
    Refusal(
      "maximum with null",
      set("c/d", mask: [], transforms: [FieldTransform(path("a"), .maximum(.null))]),
      "Input must be int64 or double."
    ),
    Refusal(
      "transform of a reserved field",
      set("c/d", mask: [], transforms: [FieldTransform(path("a.__x__"), .requestTime)]),
      "Invalid reserved name in field path __x__"
    ),
    Refusal(
      "transform of the name",
      set("c/d", mask: [], transforms: [FieldTransform(.documentID, .requestTime)]),
      "Cannot apply a transform to \"__name__\"."
    ),
    Refusal(
      "transform at depth 21",
      set("c/d", mask: [], transforms: [FieldTransform(path(repeated("x", 22)), .requestTime)]),
      "Property x contains an invalid nested entity."
    ),
    Refusal(
      "501 transforms",
      set("c/d", mask: [], transforms: transforms(501)),
      "cannot have more than 500 field transforms on a single document"
    ),
    Refusal(
      "reserved mask",
      set("c/d", mask: ["a.__x__"]),
      "Invalid reserved name in field path __x__"
    ),
    Refusal(
      "mask of 1501 bytes",
      set("c/d", mask: [String(repeating: "x", count: 1501)]),
      "property path is longer than 1500 bytes."
    ),
    Refusal(
      "mask of 21 segments",
      set("c/d", mask: [repeated("x", 21)]),
      "paths must have at most 20 elements"
    ),
    Refusal(
      "verify without a precondition",
      verify("c/d", if: .none),
      "a verify must contain a precondition"
    ),
  ]

  static func repeated(_ segment: String, _ count: Int) -> String {
    Array(repeating: segment, count: count).joined(separator: ".")
  }

  /// A path of 6019 bytes plus an ID of `bytes` bytes.
  static func longPath(_ bytes: Int) -> String {
    let parents = (0..<4).map { "c\($0)/" + String(repeating: "x", count: 1500) }
    return (parents + ["c4", String(repeating: "x", count: bytes)]).joined(separator: "/")
  }

  static func transforms(_ count: Int) -> [FieldTransform] {
    (0..<count).map { FieldTransform(path("f\($0)"), .increment(.integer(1))) }
  }

  @Test("A write at the limit is accepted", arguments: accepted.indices)
  func accepts(index: Int) throws {
    try WriteValidation.check(Self.accepted[index].1, in: database)
  }

  @Test("A write past a limit is refused in production's words", arguments: refused)
  func refuses(test: Refusal) {
    #expect(throws: StatusError.invalidArgument(test.message)) {
      try WriteValidation.check(test.write, in: database)
    }
  }

  @Test("A document of another database is refused")
  func foreignDatabase() {
    let other = DatabaseName(project: "p", database: "other")

    #expect(throws: StatusError.self) { try WriteValidation.check(set("c/d"), in: other) }
  }

  @Test(
    "A precondition that an earlier write of the commit makes impossible is malformed",
    arguments: [
      (delete("c/d"), set("c/d", if: .exists(true)), "delete then update"),
      (delete("c/d"), delete("c/d", if: .exists(true)), "delete then delete"),
      (set("c/d"), set("c/d", if: .exists(false)), "upsert then insert"),
      (set("c/d", if: .exists(false)), set("c/d", if: .exists(false)), "insert then insert"),
      (set("c/d", if: .exists(true)), set("c/d", if: .exists(false)), "update then insert"),
      (delete("c/d"), set("c/d", if: .updateTime(time(1))), "delete then update"),
      (set("c/d", if: .updateTime(time(1))), set("c/d", if: .exists(false)), "update then insert"),
    ]
  )
  func contradictions(first: Write, second: Write, words: String) throws {
    #expect(
      throws: StatusError.invalidArgument("Cannot \(words) an entity in the same request.")
    ) {
      try WriteValidation.checkSequence([first, set("c/other"), second])
    }
    try WriteValidation.checkSequence([first, set("c/d")])
    try WriteValidation.checkSequence([second])
  }

  @Test(
    "A verified document may be neither written nor verified besides in the same commit",
    arguments: [
      ([verify("c/d", if: .exists(true)), set("c/d")], "verified and then written"),
      ([set("c/d"), verify("c/d", if: .exists(true))], "written and then verified"),
      (
        [verify("c/d", if: .exists(true)), verify("c/d", if: .exists(true))],
        "verified more than once"
      ),
    ]
  )
  func verifiedBesides(writes: [Write], words: String) throws {
    #expect(
      throws: StatusError.invalidArgument(
        "the same document cannot be \(words) in a single request"
      )
    ) {
      try WriteValidation.checkSequence([set("c/other")] + writes)
    }
    try WriteValidation.checkSequence([verify("c/other", if: .exists(true)), writes[0]])
  }

  @Test("Transforms of a field and of one inside it are refused, in either order")
  func overlappingTransforms() throws {
    let one = FieldTransform(path("m"), .requestTime)
    let other = FieldTransform(path("m.f"), .requestTime)
    for transforms in [[one, other], [other, one]] {
      #expect(
        throws: StatusError.invalidArgument(
          "Cannot transform property m and its nested property at the same time."
        )
      ) {
        try WriteValidation.check(set("c/d", transforms: transforms), in: database)
      }
    }
    let siblings = [other, FieldTransform(path("m.g"), .requestTime)]
    try WriteValidation.check(set("c/d", transforms: siblings), in: database)
  }
}
