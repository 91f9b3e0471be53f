import FirestoreClient
import Foundation
import PsstModels
import Synchronization
import TestSupport
import Testing

@testable import PsstServices

/// Messages that wait for their delivery.
@Suite("Message queue", .timeLimit(.minutes(5)))
struct MessageQueueTests {
  private static func message(
    _ text: String,
    in chat: String = "c1",
    by sender: String = "carl",
    at microseconds: Int64 = 1
  ) -> QueuedMessage {
    QueuedMessage(
      id: "",
      chatId: chat,
      senderID: sender,
      text: text,
      queuedAt: Timestamp(microseconds: microseconds)
    )
  }

  /// A server that takes messages when it is told so.
  private final class Server: Sendable {
    private struct State {
      var taken: [String] = []
      var batches: [Int] = []
      var answers: [String: MessageQueue.Attempt] = [:]
      var waits: [Duration] = []
    }

    private let state = Mutex(State())
    private let (changes, continuation) = AsyncStream<Void>.makeStream()

    var taken: [String] { state.withLock { $0.taken } }
    var batches: [Int] { state.withLock { $0.batches } }
    var waits: [Duration] { state.withLock { $0.waits } }

    func answer(_ text: String, _ attempt: MessageQueue.Attempt?) {
      state.withLock { $0.answers[text] = attempt }
    }

    func take(_ messages: [QueuedMessage]) -> MessageQueue.Attempt {
      defer { continuation.yield() }
      return state.withLock { state in
        state.batches.append(messages.count)
        for message in messages {
          if let answer = state.answers[message.text] { return answer }
        }
        state.taken += messages.map(\.text)
        return .delivered(at: Timestamp(microseconds: 1))
      }
    }

    func wait(_ duration: Duration) async throws {
      state.withLock { $0.waits.append(duration) }
      continuation.yield()
      // Until the queue ends the wait.
      try await Task.sleep(for: .seconds(3600))
    }

    /// Waits until something has happened after which the condition holds.
    func until(_ holds: () async -> Bool) async {
      for await _ in changes where await holds() { return }
    }
  }

  private static func queue(
    _ server: Server,
    _ store: any MessageQueueStore = MemoryMessageQueueStore()
  ) -> MessageQueue {
    MessageQueue(store: store, senderID: "carl", pause: server.wait) { server.take($0) }
  }

  /// Runs a queue for as long as a test needs it.
  private static func running(
    _ queue: MessageQueue,
    _ test: () async throws -> Void
  ) async rethrows {
    let task = Task { await queue.run() }
    try await test()
    task.cancel()
    await task.value
  }

  @Test("Messages of a chat are sent in order, and those of the queue's earlier run first")
  func order() async throws {
    let server = Server()
    let store = MemoryMessageQueueStore()
    let first = Self.queue(server, store)
    for number in 1...5 { _ = try await first.add(Self.message("m\(number)")) }

    // The clock of the device goes back between the runs.
    let second = Self.queue(server, store)
    _ = try await second.add(Self.message("m6", at: 0))
    #expect(store.load().map(\.text) == (1...6).map { "m\($0)" })
    await Self.running(second) {
      await server.until { server.taken.count == 6 }
    }
    #expect(server.taken == (1...6).map { "m\($0)" })
    #expect(store.load() == [])
  }

  @Test("What waits goes together; one that is refused, or is there, stops no other")
  func batches() async throws {
    let server = Server()
    let queue = Self.queue(server)
    server.answer("m3", .refused(.permissionDenied))
    server.answer("m5", .delivered(at: nil))
    for number in 1...25 { _ = try await queue.add(Self.message("m\(number)")) }
    await Self.running(queue) { await server.until { server.taken.count == 23 } }
    #expect(server.taken == (1...25).filter { ![3, 5].contains($0) }.map { "m\($0)" })
    // All of the first 20 one by one, then the others.
    #expect(server.batches == [20] + Array(repeating: 1, count: 20) + [5])
    var contents = await queue.contents(of: "c1").makeAsyncIterator()
    let left = try #require(await contents.next())
    #expect(left.queued.map(\.text) == ["m3"])
    #expect(left.delivered.map(\.message.text) == server.taken)
  }

  @Test("A chat whose message cannot be sent waits, and others do not")
  func lanes() async throws {
    let server = Server()
    let queue = Self.queue(server)
    server.answer("a1", .later)
    await Self.running(queue) {
      for (text, chat) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
        _ = try? await queue.add(Self.message(text, in: chat))
      }
      await server.until { server.taken == ["b1"] && !server.waits.isEmpty }
      server.answer("a1", nil)
      await queue.retryNow()
      await server.until { server.taken.count == 3 }
    }
    #expect(server.taken == ["b1", "a1", "a2"])
  }

  @Test("The waits between attempts grow from a second to half a minute")
  func backOff() async throws {
    let server = Server()
    let queue = Self.queue(server)
    server.answer("m", .later)
    await Self.running(queue) {
      _ = try? await queue.add(Self.message("m"))
      for attempt in 1...8 {
        await server.until { server.waits.count == attempt }
        // The wait is known to the queue as soon as it has begun, or a moment later.
        await queue.retryNow()
      }
    }
    for (wait, longest) in zip(server.waits, [1, 2, 4, 8, 16, 30, 30, 30]) {
      #expect(wait > .seconds(longest) / 2 - .milliseconds(1) && wait <= .seconds(longest))
    }
  }

  @Test("A refused message stays with its reason, others follow, and it can be sent again")
  func refused() async throws {
    let server = Server()
    let store = MemoryMessageQueueStore()
    let queue = Self.queue(server, store)
    server.answer("m1", .refused(.permissionDenied))
    let id = try await queue.add(Self.message("m1")).id
    _ = try await queue.add(Self.message("m2"))
    await Self.running(queue) { await server.until { server.taken == ["m2"] } }
    #expect(store.load().map(\.failure) == ["permissionDenied"])

    // A refusal survives the process, and is not repeated by itself.
    let next = Self.queue(server, store)
    server.answer("m1", nil)
    await Self.running(next) {
      _ = try? await next.add(Self.message("m3"))
      await server.until { server.taken == ["m2", "m3"] }
      try? await next.retry(id)
      try? await next.retry("unknown")
      await server.until { server.taken.count == 3 }
    }
    #expect(server.taken == ["m2", "m3", "m1"])
  }

  @Test("A discarded message is not sent")
  func discarded() async throws {
    let server = Server()
    let store = MemoryMessageQueueStore()
    let queue = Self.queue(server, store)
    let id = try await queue.add(Self.message("m1")).id
    _ = try await queue.add(Self.message("m2"))
    await queue.remove(id)
    await queue.remove(id)
    await Self.running(queue) { await server.until { server.taken == ["m2"] } }
    #expect(store.load() == [])
  }

  @Test("A chat with too many messages takes no other chat's place")
  func full() async throws {
    let server = Server()
    let queue = Self.queue(server)
    for _ in 0..<500 { _ = try await queue.add(Self.message("m")) }
    await #expect(throws: MessageError.queueFull) { try await queue.add(Self.message("m")) }
    _ = try await queue.add(Self.message("m", in: "c2"))
    await Self.running(queue) { await server.until { server.taken.count == 501 } }
    _ = try await queue.add(Self.message("m"))
  }

  @Test("Two tasks that run the queue send each message once")
  func twoRuns() async throws {
    let server = Server()
    let queue = Self.queue(server)
    for number in 0..<20 { _ = try await queue.add(Self.message("m\(number)", in: "c\(number)")) }
    await Self.running(queue) {
      await Self.running(queue) { await server.until { server.taken.count == 20 } }
    }
    #expect(Set(server.taken).count == server.taken.count)
  }

  @Test("A run that begins before the one before has ended takes its place")
  func restarted() async throws {
    let server = Server()
    let queue = Self.queue(server)
    server.answer("m1", .later)
    _ = try await queue.add(Self.message("m1"))
    let first = Task { await queue.run() }
    await server.until { server.waits.count == 1 }
    let second = Task { await queue.run() }
    first.cancel()
    await first.value
    server.answer("m1", nil)
    _ = try await queue.add(Self.message("m2", in: "c2"))
    await server.until { Set(server.taken) == ["m1", "m2"] }
    // A waiting run can be cancelled, too.
    let third = Task { await queue.run() }
    third.cancel()
    await third.value
    second.cancel()
    await second.value
  }

  @Test("A message that the server fails at again and again counts as refused")
  func mistakes() async throws {
    let server = Server()
    let store = MemoryMessageQueueStore()
    let queue = Self.queue(server, store)
    server.answer("m1", .failed)
    _ = try await queue.add(Self.message("m1"))
    _ = try await queue.add(Self.message("m2"))
    await Self.running(queue) {
      for attempt in 1...10 {
        await server.until { server.waits.count == attempt }
        await queue.retryNow()
      }
      await server.until { server.taken == ["m2"] }
    }
    #expect(store.load().map(\.failure) == ["refused"])
  }

  // MARK: Files

  private static func inFolder(_ test: (URL) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    try await test(URL(filePath: folder.path, directoryHint: .isDirectory))
  }

  @Test("Messages in files survive the process, with all their contents")
  func files() async throws {
    try await Self.inFolder { folder in
      let store = FileMessageQueueStore(folder: folder, uid: "carl")
      #expect(try store.load() == [])
      var first = Self.message("Hi 👋\n\u{0}", at: 1_700_000_000_123_456)
      first.id = "a"
      first.media = MessageMedia(
        url: "https://x/y.jpg",
        thumbnailURL: "https://x/t.jpg",
        size: 17,
        dimensions: MediaDimensions(width: 4, height: 3)
      )
      var second = Self.message("Two")
      second.id = "b"
      try store.save(second)
      try store.save(first)
      first.failure = "permissionDenied"
      try store.save(first)
      #expect(try FileMessageQueueStore(folder: folder, uid: "carl").load() == [first, second])
      try store.remove("b")
      try store.remove("b")
      #expect(try store.load() == [first])
    }
  }

  @Test("A file that is damaged is set aside, and stops no other message")
  func damaged() async throws {
    try await Self.inFolder { folder in
      let store = FileMessageQueueStore(folder: folder, uid: "carl")
      var message = Self.message("Hi")
      for id in ["a", "b", "c"] {
        message.id = id
        try store.save(message)
      }
      let files = try #require(
        FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
      )
      .compactMap { $0 as? URL }.filter { $0.pathExtension == "json" }
      .sorted { $0.path < $1.path }
      try Data("{\"message\":".utf8).write(to: files[0])
      // A copy under another name would be sent, and never removed.
      try FileManager.default.moveItem(
        at: files[1],
        to: files[1].deletingLastPathComponent().appending(path: "d.json")
      )
      #expect(try store.load().map(\.id) == ["c"])
      #expect(try store.load().map(\.id) == ["c"])
    }
  }

  @Test("What one user has queued is not sent by the next user of the device")
  func users() async throws {
    try await Self.inFolder { folder in
      let carl = FileMessageQueueStore(folder: folder, uid: "carl")
      var message = Self.message("Hi")
      message.id = "a"
      try carl.save(message)
      #expect(try FileMessageQueueStore(folder: folder, uid: "cora").load() == [])
      #expect(try FileMessageQueueStore(folder: folder, uid: "../carl").load() == [])

      // Not even if the file finds its way into the other's folder.
      let server = Server()
      let store = MemoryMessageQueueStore()
      store.save(Self.message("Not mine", by: "cora"))
      let queue = Self.queue(server, store)
      _ = try await queue.add(Self.message("Mine"))
      await Self.running(queue) { await server.until { server.taken.count == 1 } }
      #expect(server.taken == ["Mine"])
    }
  }

  @Test("A message that cannot be stored is not queued")
  func unwritable() async throws {
    try await Self.inFolder { folder in
      let file = folder.appending(path: "file")
      try Data().write(to: file)
      let queue = Self.queue(Server(), FileMessageQueueStore(folder: file, uid: "carl"))
      await #expect(throws: (any Error).self) { try await queue.add(Self.message("Hi")) }
      var observed = await queue.contents(of: "c1").makeAsyncIterator()
      #expect(await observed.next()?.queued == [])
    }
  }

  // MARK: Ids

  @Test("Ids sort in the order in which they were made, whatever the clock does")
  func ids() {
    var ids = SortableID()
    var made: [String] = []
    for time in [5, 5, 4, 1_700_000_000_000_000, 1_700_000_000_000_001, 0, -7, 62, .max] {
      made.append(ids.next(at: Int64(time)) { .random(in: 0 ... .max) })
    }
    #expect(made == made.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    #expect(Set(made).count == made.count)
    #expect(made.allSatisfy { $0.utf8.count == 20 })

    var next = SortableID()
    for id in made.prefix(8) { next.follow(id) }
    #expect(next.next(at: 0) { 0 } > made[7])
    next.follow("short")
    next.follow("zzzzzzzzzzzzzzzzzzzz")
    next.follow("!!!!!!!!!!!!!!!!!!!!")
    #expect(next.next(at: 0) { 0 } < "zz")
  }
}
