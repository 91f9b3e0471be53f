import DocumentModel
import Identity
import QueryEngine
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore
@testable import EventLog

@Suite("The work and memory of slow listeners", .timeLimit(.minutes(5)))
struct ListenMemoryTests {
  /// A memory budget for one listener.
  private final class Memory: ListenMemory {
    let bytesMax: Int
    let held = Mutex(0)

    init(bytesMax: Int = .max) { self.bytesMax = bytesMax }

    func hold(_ bytes: Int) -> Bool {
      held.withLock { held in
        guard bytes <= bytesMax else { return false }
        held = bytes
        return true
      }
    }

    func moved(_ bytes: Int) {}
  }

  private static let large: MapValue = ["t": .string(String(repeating: "x", count: 100_000))]

  private func waitForHub(_ fixture: StoreFixture) async throws {
    let last = try await fixture.store.readPosition().sequence
    await withCheckedContinuation { continuation in
      fixture.store.hub.withTable { table in
        table.after(last) { $0.afterwards { continuation.resume() } }
      }
    }
  }

  private func open(_ fixture: StoreFixture, _ memory: Memory) -> ListenSession {
    fixture.store.openListener(database: database, auth: .admin, memory: memory)
  }

  @Test("A page without a waiting listener is not read", arguments: ["close", "remove", "drop"])
  func readsStop(_ end: String) async throws {
    let fixture = StoreFixture(configuration: .init(queryPageDocumentsMax: 1))
    try await withListeners(fixture) { fixture in
      for index in 0..<20 { try await fixture.commit(set("c/d\(index)", Self.large)) }
      let session = fixture.store.openListener(
        database: database,
        auth: .admin,
        configuration: .init(resultBytesMax: 1)
      )
      defer { session.close() }
      await session.add(ListenRequest(.query(all("c"))), id: 2)
      await eventually("the read begins") { fixture.store.longReads.neededSequence != nil }
      // The read waits until the client takes the first page.
      await eventually("a page is queued") { session.queuedResultBytes > 0 }
      let reads = fixture.storage.readsBegun
      switch end {
      case "close": session.close()
      case "remove": await session.remove(2)
      default: session.dropQueued()
      }
      await eventually("the read ends") { fixture.store.longReads.neededSequence == nil }

      #expect(fixture.storage.readsBegun == reads)
      #expect(session.queuedResultBytes == 0)
    }
  }

  @Test("Documents are not read for a window whose listener has left")
  func windowReadsStop() async throws {
    let fixture = StoreFixture(configuration: .init(queryPageDocumentsMax: 1))
    for index in 0..<5 { try await fixture.commit(set("c/d\(index)")) }
    var query = all("c")
    query.limit = 3
    let reading = ListenTable.Reading(view: 1, query: query, time: nil)
    let asked = Mutex(0)
    await #expect(throws: CancellationError.self) {
      try await fixture.store.documents(for: reading) {
        asked.withLock {
          $0 += 1
          return $0 < 3
        }
      }
    }
    #expect(asked.withLock(\.self) == 3, "It is asked before each page.")
    let reads = fixture.storage.readsBegun
    await #expect(throws: CancellationError.self) {
      try await fixture.store.documents(for: reading) { false }
    }
    #expect(fixture.storage.readsBegun == reads)
  }

  @Test("What waits for a client is counted until it is taken, removed or the client is gone")
  func counted() async throws {
    try await withListeners { fixture in
      try await fixture.commit(set("c/a", Self.large))
      let memory = Memory()
      let session = open(fixture, memory)
      await session.add(ListenRequest(.query(all("c"))), id: 2)
      await eventually("a result is held") { memory.held.withLock { $0 > 0 } }
      await session.remove(2)
      #expect(memory.held.withLock(\.self) == 0)

      await session.add(ListenRequest(.query(all("c"))), id: 4)
      _ = await session.next()
      try await fixture.commit(set("c/b", Self.large))
      try await waitForHub(fixture)
      await eventually("both results are held") { memory.held.withLock { $0 >= 200_000 } }
      session.close()
      #expect(memory.held.withLock(\.self) == 0)
    }
  }

  @Test("A listener for which there is no memory begins again, and then has everything")
  func beginsAgain() async throws {
    try await withListeners { fixture in
      let memory = Memory(bytesMax: 350_000)
      let session = open(fixture, memory)
      defer { session.close() }
      await session.add(ListenRequest(.query(all("c"))), id: 2)
      var texts: [String] = []
      func take() async throws {
        for event in try #require(await session.next()) {
          switch event {
          case .reset: texts.append("reset")
          case .current: texts.append("current")
          case .document(let document, _, _): texts.append(document.document.name.id)
          default: break
          }
        }
      }
      while texts.last != "current" { try await take() }
      for index in 0..<8 { try await fixture.commit(set("c/d\(index)", Self.large)) }
      try await fixture.commit(delete("c/d0"))
      try await waitForHub(fixture)
      #expect(memory.held.withLock { $0 } <= 350_000)
      while texts.count(where: { $0 == "current" }) < 2 { try await take() }

      #expect(texts.contains("reset"))
      let last = try #require(texts.lastIndex(of: "reset"))
      #expect(Set(texts[last...]).isSuperset(of: (1..<8).map { "d\($0)" }))
      #expect(!texts[last...].contains("d0"))
    }
  }

  @Test("Large results are taken a few documents at a time")
  func partsOfResults() async throws {
    try await withListeners { fixture in
      for index in 0..<30 { try await fixture.commit(set("c/d\(index)", Self.large)) }
      let session = fixture.store.openListener(database: database, auth: .admin)
      defer { session.close() }
      await session.add(ListenRequest(.query(all("c"))), id: 2)
      var names: Set<String> = []
      var largest = 0
      var isCurrent = false
      while !isCurrent {
        var count = 0
        for event in try #require(await session.next()) {
          if case .document(let document, _, _) = event {
            names.insert(document.document.name.id)
            count += 1
          }
          if case .current = event { isCurrent = true }
        }
        largest = max(largest, count)
      }

      #expect(names.count == 30)
      #expect(largest <= 12)
    }
  }

  // MARK: Result counts

  @Test("The number of a query's results is known while and after somebody listens to it")
  func counts() async throws {
    try await withListeners { fixture in
      var random = SeededGenerator.forTest()
      var query = all("c")
      query.filter = .field(path("n"), .lessThan, .integer(5))
      let prepared = try fixture.store.prepare(.query(query), of: database)
      guard case .results(let shown) = prepared else { return }
      func check() async throws {
        try await waitForHub(fixture)
        let count = fixture.store.hub.withTable { $0.count(of: shown.query)?.count }
        #expect(try await fixture.ids(query).count == count)
      }
      func change() async throws {
        let path = "c/d\(Int.random(in: 0..<30, using: &random))"
        let number = Int64.random(in: 0..<10, using: &random)
        try await fixture.commit(
          Bool.random(using: &random) ? set(path, ["n": .integer(number)]) : delete(path)
        )
      }
      for _ in 0..<30 { try await change() }
      let phone = Phone(fixture)
      await phone.session.add(ListenRequest(.query(query)), id: 2)
      for _ in 0..<20 { try await change() }
      while try await !phone.toSnapshot().contains("current 2") {}
      try await check()
      for _ in 0..<50 {
        try await change()
        try await check()
      }
      phone.session.close()
      let kept = try #require(fixture.store.hub.withTable { $0.count(of: shown.query) })
      try await change()
      #expect(fixture.store.hub.withTable { $0.count(of: shown.query) } == kept)

      _ = try await fixture.store.load([document("c/z")], into: database, recordsEvents: false)
      try await waitForHub(fixture)
      #expect(fixture.store.hub.withTable { $0.count(of: shown.query) } == nil)
    }
  }

  @Test("A client that resumes with its count costs no scan of the collection, right or wrong")
  func expectedCount() async throws {
    try await withListeners { fixture in
      let offsets = 0..<500
      for start in [0, 500, 1000, 1500] {
        _ = try await fixture.store.commit(
          offsets.map { set("c/d\(start + $0)") },
          database: database,
          transaction: nil,
          auth: .admin
        )
      }
      let first = Phone(fixture)
      await first.session.add(ListenRequest(.query(all("c"))), id: 2)
      while try await !first.toSnapshot().contains("current 2") {}
      let time = try await fixture.store.readPosition().readTime
      first.session.close()
      try await fixture.commit(set("c/new"))
      func resume(_ count: Int) async throws -> (texts: [String], reads: Int) {
        let phone = Phone(fixture)
        let reads = fixture.storage.readsBegun
        await phone.session.add(
          ListenRequest(.query(all("c")), resumePoint: .readTime(time), expectedCount: count),
          id: 2
        )
        return (try await phone.toSnapshot(), fixture.storage.readsBegun - reads)
      }
      let scan = try await {
        let reads = fixture.storage.readsBegun
        _ = try await fixture.ids(all("c"))
        return fixture.storage.readsBegun - reads
      }()

      let right = try await resume(2000)
      #expect(right.texts == ["added 2", "c/new [2]", "current 2"])
      let again = try await resume(2000)
      #expect(again.texts == right.texts)
      let wrong = try await resume(1999)
      #expect(wrong.texts == ["added 2", "c/new [2]", "filter 2 2001", "current 2"])
      #expect(again.reads < scan && wrong.reads > scan, "\(again.reads), \(wrong.reads), \(scan)")
      try await fixture.commit(delete("c/d7"))
      // A client with the right documents meets the filter while it still has the deleted one.
      let (filter, deleted) = ("filter 2 2000", "deleted c/d7 -[2]")
      #expect(
        try await resume(2000).texts == ["added 2", "c/new [2]", filter, deleted, "current 2"]
      )
      // One that has lost a document would find the count right before the deletion.
      #expect(
        try await resume(1999).texts.suffix(2) == [filter, "current 2"]
      )
    }
  }
}
