import Testing

@testable import EmulatorSuite

@Suite("Watching the rules file")
struct RulesFileWatchTests {
  private static func actions(
    after first: RulesFileWatch.Look,
    _ looks: RulesFileWatch.Look...
  ) -> [RulesFileWatch.Action] {
    var watch = RulesFileWatch(first)
    return looks.map { watch.looked($0) }
  }

  @Test("A change is loaded when it is seen twice, and once")
  func change() {
    let actions = Self.actions(
      after: .content("a"),
      .content("a"),
      .content("b"),
      .content("b"),
      .content("b"),
      .content("a"),
      .content("a")
    )

    #expect(actions == [.wait, .wait, .load("b"), .wait, .wait, .load("a")])
  }

  @Test("Neither a truncated file nor a part of one is loaded while it is being written")
  func pieces() {
    let actions = Self.actions(
      after: .content("a"),
      .content(""),
      .content("b"),
      .content("b c"),
      .content("b c")
    )

    #expect(actions == [.wait, .wait, .wait, .load("b c")])
  }

  @Test("A file that is replaced is not reported missing")
  func replaced() {
    #expect(Self.actions(after: .content("a"), .missing, .content("a")) == [.wait, .wait])
  }

  @Test("A file that stays away is reported once, and loaded when another content comes back")
  func missing() {
    let actions = Self.actions(
      after: .content("a"),
      .missing,
      .missing,
      .missing,
      .content("a"),
      .content("a"),
      .missing,
      .missing,
      .content("b"),
      .content("b")
    )

    #expect(
      actions == [
        .wait, .report("is no longer there."), .wait, .wait, .wait, .wait,
        .report("is no longer there."), .wait, .load("b"),
      ]
    )
  }

  @Test("Each reason why a file cannot be read is reported once")
  func unreadable() {
    let actions = Self.actions(
      after: .content("a"),
      .unreadable("x"),
      .unreadable("x"),
      .unreadable("x"),
      .unreadable("y"),
      .unreadable("y")
    )

    #expect(
      actions == [.wait, .report("cannot be read: x"), .wait, .wait, .report("cannot be read: y")]
    )
  }

  @Test("A file that was missing is loaded when it comes")
  func appearing() {
    #expect(
      Self.actions(after: .missing, .missing, .content("a"), .content("a")) == [
        .wait, .wait, .load("a"),
      ]
    )
  }
}
