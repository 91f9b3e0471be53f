import DocumentModel
import FirestoreWire
import StatusCodes
import Testing

@Suite("Names and field paths on the wire")
struct NameFormatTests {
  static let root = "projects/p/databases/(default)/documents"

  @Test("Good names are read to their parts")
  func goodNames() throws {
    let name = try WireFormat.documentName("\(Self.root)/a/b c:d/é/__id7__")
    let (database, path) = try WireFormat.parent(Self.root)

    #expect(name.path.segments == ["a", "b c:d", "é", "__id7__"])
    #expect(name.description == "\(Self.root)/a/b c:d/é/__id7__")
    #expect(database == DatabaseName(project: "p") && path.segments.isEmpty)
    #expect(WireFormat.parent(database: database, path: path) == Self.root)
    #expect(try WireFormat.documentName("\(Self.root)/a/____").id == "____")
  }

  @Test(
    "A bad document name is refused where it goes wrong",
    arguments: [
      ("", #"Document name "" lacks "projects" at index 0."#),
      ("foo", #"Document name "foo" lacks "projects" at index 0."#),
      (root, #"Document name "\#(root)" lacks "/" at index 40."#),
      ("\(root)/c", #"Document name "\#(root)/c" lacks "/" at index 42."#),
      ("\(root)/c/a/", #"Document name "\#(root)/c/a/" has invalid trailing "/"."#),
      ("\(root)/c//a/b", #"Document name "\#(root)/c//a/b" lacks a resource id at index 43."#),
      ("\(root)/c/..", #"Document name "\#(root)/c/.." contains a resource id ".." at index 43."#),
      ("\(root)/c/__a__", #"Resource id "__a__" is invalid because it is reserved."#),
      ("\(root)/__c__/a", #"Collection id "__c__" is invalid because it is reserved."#),
      ("\(root)/__id7__/a", #"Collection id "__id7__" is invalid because it is reserved."#),
      (
        "\(root)/c/" + String(repeating: "x", count: 1501),
        "The key path element name is longer than 1500 bytes."
      ),
    ]
  )
  func badNames(name: String, message: String) {
    #expect(throws: StatusError.invalidArgument(message)) { try WireFormat.documentName(name) }
  }

  @Test(
    "A bad database name is refused",
    arguments: [
      ("", #"Database name "" lacks "projects" at index 0."#),
      (
        "projects/x/databases/", #"Database name "projects/x/databases/" has invalid trailing "/"."#
      ),
      (root, #"Database name "\#(root)" has extra characters at index 30."#),
    ]
  )
  func badDatabases(name: String, message: String) {
    #expect(throws: StatusError.invalidArgument(message)) { try WireFormat.database(name) }
  }

  @Test("Field paths are read, quoted or not", arguments: ["a", "a.b", "`a.b`.c", "__name__"])
  func goodPaths(text: String) throws {
    #expect(try WireFormat.fieldPath(text).description == text)
  }

  @Test("Bad field paths are refused", arguments: ["", "a..b", "1a", "a.", "__x__", "a.`__x__`"])
  func badPaths(text: String) {
    #expect(throws: StatusError.self) { try WireFormat.fieldPath(text) }
  }
}
