import DatabaseModel
import JSONText
import TestSupport
import Testing

@Suite("Merge patches of the Realtime Database")
struct MergePatchTests {
  private func node(_ json: String) throws -> DatabaseNode {
    try DatabaseInput(parsing: Array(json.utf8)).node
  }

  @Test(
    "A patch has what differs, with null for what is gone",
    arguments: [
      (#"{"a":1,"b":2}"#, #"{"b":2}"#, #"{"a":null}"#),
      ("null", #"{"a":{"b":1}}"#, #"{"a":{"b":1}}"#),
      (#"{"a":1}"#, "null", "null"), (#"{"a":1}"#, "5", "5"), ("5", #"{"a":1}"#, #"{"a":1}"#),
      (#"{"a":{"x":1,"y":2},"b":1}"#, #"{"a":{"x":1,"y":3},"b":1}"#, #"{"a":{"y":3}}"#),
      (#"{"a":1}"#, #"{"a":1}"#, "{}"), ("[1,2]", "[1,3]", #"{"1":3}"#),
    ]
  )
  func patch(before: String, after: String, patch: String) throws {
    let (before, after) = (try node(before), try node(after))

    #expect(String(decoding: before.mergePatch(to: after), as: UTF8.self) == patch)
    #expect(try before.applying(JSONTree.parse(Array(patch.utf8))) == after)
  }

  @Test("A patch that empties an object removes it")
  func emptied() throws {
    let before = try node(#"{"a":{"x":1},"b":2}"#)
    let patch = try JSONTree.parse(Array(#"{"a":{"x":null}}"#.utf8))

    #expect(try before.applying(patch) == node(#"{"b":2}"#))
  }

  @Test("A patch with an invalid key is refused")
  func invalid() throws {
    let patch = try JSONTree.parse(Array(#"{"a":{"b.c":1}}"#.utf8))

    #expect(throws: DatabaseDataError.self) { try DatabaseNode.empty.applying(patch) }
  }

  @Test("Any two nodes have a patch that leads from one to the other")
  func random() throws {
    var generator = SeededGenerator.forTest()
    for _ in 0..<500 {
      let (before, after) = (Self.tree(&generator, 3), Self.tree(&generator, 3))
      let patch = try JSONTree.parse(before.mergePatch(to: after))

      #expect(try before.applying(patch) == after)
    }
  }

  private static func tree(_ generator: inout SeededGenerator, _ depth: Int) -> DatabaseNode {
    switch Int.random(in: 0..<(depth > 0 ? 5 : 3), using: &generator) {
    case 0: return .empty
    case 1: return DatabaseNode(.number(Double(Int.random(in: 0..<3, using: &generator))))
    case 2: return DatabaseNode(.string("s"))
    default:
      let keys = ["a", "b", "1", "2"].filter { _ in Bool.random(using: &generator) }
      return DatabaseNode(
        DatabaseChildren(keys.map { ($0, tree(&generator, depth - 1)) })
      )
    }
  }
}
