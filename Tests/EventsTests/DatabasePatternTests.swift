import Events
import StatusCodes
import Testing

@Suite("Patterns of the Realtime Database")
struct DatabasePatternTests {
  @Test(
    "An instance is named exactly, or by a pattern with one *",
    arguments: [
      ("main", ["main"]), ("*", ["main", "my-a", "my-", "my-a-eu"]),
      ("my-*", ["my-a", "my-", "my-a-eu"]), ("my-*-eu", ["my-a-eu"]), ("other", []),
    ]
  )
  func instances(pattern: String, expected: [String]) throws {
    let pattern = try DatabasePattern(instance: pattern, ref: "a")
    let names = ["main", "my-a", "my-", "my-a-eu"]

    #expect(Set(names.filter { pattern.matches(instance: $0) }) == Set(expected))
  }

  @Test(
    "A malformed pattern is refused with what to change",
    arguments: [
      ("", "a", "The instance pattern \"\" is malformed"), ("a*b*", "a", "write a name, *"),
      ("a/b", "a", "malformed"), ("a", "", "is empty"), ("a", "presence/{u", "malformed segment"),
      ("a", "x/my-*", "malformed segment"), ("a", "{u}/{u}", "captures one name twice"),
    ]
  )
  func malformed(instance: String, ref: String, reason: String) {
    let error = #expect(throws: StatusError.self) {
      try DatabasePattern(instance: instance, ref: ref)
    }

    #expect(error?.statusMessage.contains(reason) == true, "\(error?.statusMessage ?? "")")
  }

  @Test(
    "A write is recorded at the highest node that a function watches, else at its own path",
    arguments: [
      ("presence/u1/devices/d1", 2), ("presence/u1", 2), ("presence", 1), ("", 0),
      ("presence/u1/online", 2), ("chats/c1", 2), ("chats/c1/m/m1/text", 4), ("chats/c1/n", nil),
      ("logs/2026/1/x", 4), ("logs", 1), ("deep/a/b/end/c", 4), ("deep/a/b", 3), ("others", nil),
      ("sole/key", 1), ("other", nil),
    ]
  )
  func captureDepth(path: String, depth: Int?) throws {
    let patterns = DatabaseTriggerPatterns(
      try [
        "presence/{uid}/devices/{device}", "/presence/{uid}/", "chats/{chat}/m/{message}",
        "logs/**", "deep/{path=**}/end", "sole",
      ].map { try DatabasePattern(instance: "main", ref: $0) }
    )
    let keys = path.split(separator: "/").map { String($0) }

    #expect(patterns.captureDepth(of: keys, instance: "main") == depth)
    #expect(patterns.captureDepth(of: keys, instance: "other") == nil)
  }

  @Test("Without functions nothing is recorded")
  func noFunctions() {
    #expect(DatabaseTriggerPatterns([]).captureDepth(of: ["a"], instance: "main") == nil)
  }
}
