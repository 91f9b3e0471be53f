import DocumentModel
import TestSupport
import Testing

@Suite("Field paths")
struct FieldPathTests {
  @Test(
    "The canonical spelling is read and written",
    arguments: [
      ("a", ["a"]), ("a.b_1.C", ["a", "b_1", "C"]), ("__name__", ["__name__"]), ("_", ["_"]),
      ("`a.b`", ["a.b"]), ("`a.b`.c", ["a.b", "c"]), ("`1a`", ["1a"]), (#"`a\`b`"#, ["a`b"]),
      (#"`a\\b`"#, [#"a\b"#]), ("`é`", ["é"]), ("` `", [" "]), ("`a`.b", ["a", "b"]),
      ("`e\u{301}`", ["e\u{301}"]), ("`\\`\u{301}`", ["`\u{301}"]),
    ]
  )
  func readsSpellings(text: String, segments: [String]) throws {
    let path = try #require(FieldPath(text))

    #expect(path == FieldPath(segments))
    #expect(FieldPath(path.description) == path)
  }

  @Test(
    "A syntax error is refused",
    arguments: [
      "", ".", "a.", ".a", "a..b", "1a", "a b", "a-b", "é", "`a", "a`", "``", "`a`b", "`a`.",
      #"`a\"#, #"`a\`"#, "`", "a.`", "a.``", "*", "a[0]", "a/b",
    ]
  )
  func refusesSyntaxErrors(text: String) {
    #expect(FieldPath(text) == nil)
  }

  @Test("A literal is a path in the form that clients write")
  func literals() {
    let paths: [FieldPath] = ["name", "address.city", "`a.b`.c", "first-name.1"]

    #expect(
      paths == [
        FieldPath(["name"]), FieldPath(["address", "city"]), FieldPath(["a.b", "c"]),
        FieldPath(["first-name", "1"]),
      ]
    )
    #expect([FieldPath(["name"])].contains("name"))
  }

  @Test("A literal that is no path stops the program", arguments: ["", "a..b", "a[0]", "`a"])
  func refusedLiterals(text: String) async {
    await #expect(processExitsWith: .failure) { [text] in _ = FieldPath(stringLiteral: text) }
  }

  @Test("Any keys survive writing and reading")
  func roundTrips() {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<2000 {
      let path = FieldPath(
        (0...Int.random(in: 0...3, using: &values.random)).map { _ in values.id() }
      )
      #expect(FieldPath(path.description) == path, "\(path.segments)")
    }
  }

  @Test("Setting, getting and deleting at a path agree")
  func setsAtPaths() {
    var fields: MapValue = ["a": .integer(1), "m": .map(["x": .integer(2)])]
    fields.set(.integer(3), at: FieldPath(["m", "y", "z"]))
    fields.set(.integer(4), at: FieldPath(["a", "b"]))
    fields.set(nil, at: FieldPath(["m", "x"]))
    fields.set(nil, at: FieldPath(["absent", "deep"]))
    fields.set(nil, at: FieldPath(["m", "y", "z", "below"]))

    #expect(
      fields == [
        "a": .map(["b": .integer(4)]), "m": .map(["y": .map(["z": .integer(3)])]),
      ]
    )
    #expect(fields[FieldPath(["m", "y", "z"])] == .integer(3))
    #expect(fields[FieldPath(["m", "y", "z", "w"])] == nil)
    #expect(fields[FieldPath(["none"])] == nil)
  }

  @Test("A path is below itself and its ancestors only")
  func ancestry() {
    let path = FieldPath(["a", "b"])

    #expect(path.isBelowOrEqual(to: path))
    #expect(path.isBelowOrEqual(to: FieldPath(["a"])))
    #expect(!path.isBelowOrEqual(to: FieldPath(["b"])))
    #expect(!FieldPath(["a"]).isBelowOrEqual(to: path))
    #expect(FieldPath(["a"]) < path)
    #expect(FieldPath.documentID.isDocumentID)
  }
}
