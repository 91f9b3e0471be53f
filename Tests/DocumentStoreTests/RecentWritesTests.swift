import DocumentModel
import Testing

@testable import DocumentStore

@Suite("Recent writes")
struct RecentWritesTests {
  private func lookUps(_ paths: String..., at visible: Int64) -> LookUps {
    LookUps(names: Set(paths.map { name($0) }), visible: time(visible))
  }

  @Test("A document counts as changed for all who have not seen its last change")
  func changed() {
    var recent = RecentWrites()
    #expect(recent.areUnchanged(lookUps("c/a", at: 0)))
    recent.note([name("c/a"), name("c/b")], at: time(10))
    recent.note([name("c/a")], at: time(20))

    #expect(!recent.areUnchanged(lookUps("c/a", at: 19)))
    #expect(recent.areUnchanged(lookUps("c/a", at: 20)))
    #expect(!recent.areUnchanged(lookUps("c/x", "c/b", at: 9)))
    #expect(recent.areUnchanged(lookUps("c/x", "c/b", at: 10)))
    #expect(recent.areUnchanged(lookUps(at: 0)))
  }

  @Test("What is no longer known counts as changed, but nothing that was kept is forgotten")
  func bound() {
    var recent = RecentWrites(changesMax: 3)
    for number: Int64 in 1...5 { recent.note([name("c/d\(number)")], at: time(number)) }
    recent.note([name("c/d5")], at: time(6))

    #expect(!recent.areUnchanged(lookUps("c/x", at: 2)))
    #expect(recent.areUnchanged(lookUps("c/x", at: 3)))
    #expect(!recent.areUnchanged(lookUps("c/d4", at: 3)))
    #expect(!recent.areUnchanged(lookUps("c/d5", at: 5)))
  }

  @Test("After a reset or a load everything counts as changed")
  func everything() {
    var recent = RecentWrites()
    recent.noteEverything(at: time(10))

    #expect(!recent.areUnchanged(lookUps("c/x", at: 9)))
    #expect(recent.areUnchanged(lookUps("c/x", at: 10)))
  }
}
