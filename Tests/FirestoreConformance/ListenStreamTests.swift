import DocumentModel
import DocumentStore
import FirestoreEmulator
import FirestoreProtos
import FirestoreWire
import HTTPSupport
import Identity
import Logging
import SwiftProtobuf
import Synchronization
import Testing
import TestSupport

@Suite("Streams of one client beside each other", .timeLimit(.minutes(5)))
struct ListenStreamTests {
  private static let root = "projects/demo-psst/databases/(default)"

  /// A request stream that a test feeds one message at a time.
  private struct Requests<Message: Sendable>: Sendable {
    private let stream: AsyncStream<Message>
    let send: AsyncStream<Message>.Continuation
    let next: @Sendable () async throws -> Message?

    init() {
      let (stream, send) = AsyncStream<Message>.makeStream()
      (self.stream, self.send) = (stream, send)
      // Only one task calls `next`.
      nonisolated(unsafe) var iterator = stream.makeAsyncIterator()
      next = { await iterator.next() }
    }
  }

  private static func listening(limit: Int32?) -> Google_Firestore_V1_ListenRequest {
    .with {
      $0.database = root
      $0.addTarget = .with {
        $0.targetID = 2
        $0.query.parent = root + "/documents"
        $0.query.structuredQuery.from = [.with { $0.collectionID = "c" }]
        if let limit { $0.query.structuredQuery.limit.value = limit }
      }
    }
  }

  private static func writing(_ id: String, _ text: String = "") -> Google_Firestore_V1_Write {
    .with {
      $0.update.name = root + "/documents/c/\(id)"
      $0.update.fields = ["t": .with { $0.stringValue = text }]
    }
  }

  /// The record of everything sent on a client's two streams.
  private final class Log: Sendable {
    let sent = Mutex<Set<String>>([])
    let acknowledgedCount = Mutex(-1)
    let earlyCount = Mutex(0)
    let acknowledged: AsyncStream<Void>
    let acknowledge: AsyncStream<Void>.Continuation
    let current: AsyncStream<Void>
    let isCurrent: AsyncStream<Void>.Continuation

    init() {
      (acknowledged, acknowledge) = AsyncStream.makeStream()
      (current, isCurrent) = AsyncStream.makeStream()
    }

    func take(_ replies: [ListenReply]) {
      for reply in replies {
        switch reply {
        case .document(let document, _, _, _): _ = sent.withLock { $0.insert(document.name.id) }
        case .target(.current, _, _, _, _): isCurrent.yield()
        default: break
        }
      }
    }

    func takeAcknowledgement() {
      let number = acknowledgedCount.withLock { count in
        defer { count += 1 }
        return count
      }
      if number >= 0, sent.withLock({ !$0.contains("d\(number)") }) {
        earlyCount.withLock { $0 += 1 }
      }
      acknowledge.yield()
    }
  }

  @Test("An idle client's listener is sent each of 200 writes before its acknowledgement")
  func order() async throws {
    try await withFirestore { firestore in
      let service = firestore.service
      let listens = Requests<Google_Firestore_V1_ListenRequest>()
      let writes = Requests<Google_Firestore_V1_WriteRequest>()
      let log = Log()
      let listening = Task {
        try await service.listen(
          to: listens.next,
          resourcePrefix: nil,
          auth: .admin,
          client: .page("p")
        ) { log.take($0) }
      }
      let writing = Task {
        try await service.write(
          from: writes.next,
          resourcePrefix: nil,
          auth: .admin,
          client: .page("p")
        ) { _ in log.takeAcknowledgement() }
      }
      listens.send.yield(Self.listening(limit: nil))
      _ = await log.current.first { _ in true }
      writes.send.yield(.with { $0.database = Self.root })
      var acknowledgements = log.acknowledged.makeAsyncIterator()
      _ = await acknowledgements.next()
      for index in 0..<200 {
        writes.send.yield(.with { $0.writes = [Self.writing("d\(index)")] })
        _ = await acknowledgements.next()
      }
      writes.send.finish()
      listens.send.finish()
      try await writing.value
      try await listening.value

      #expect(log.sent.withLock(\.count) == 200)
      // If the server did not wait, nearly all would be early. On a busy machine some still may be.
      #expect(log.earlyCount.withLock(\.self) < 100)
    }
  }

  @Test("Listeners that read nothing and leave give back all memory", arguments: [nil, 10])
  func memory(limit: Int32?) async throws {
    let budget = TransferBudget(
      bytesMax: 700_000,
      stallMin: .zero,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
    try await withFirestore(budget: budget) { firestore in
      let service = firestore.service
      for index in 0..<4 {
        _ = try await service.commit(
          .with {
            $0.database = Self.root
            $0.writes = [Self.writing("d\(index)", String(repeating: "x", count: 100_000))]
          },
          auth: .admin
        )
      }
      for round in 0..<6 {
        let listens = Requests<Google_Firestore_V1_ListenRequest>()
        let (stuck, isStuck) = AsyncStream<Void>.makeStream()
        let listening = Task {
          try await service.listen(to: listens.next, resourcePrefix: nil, auth: .admin) { _ in
            isStuck.yield()
            try await Task.sleep(for: .seconds(3600))
          }
        }
        listens.send.yield(Self.listening(limit: limit))
        _ = await stuck.first { _ in true }
        for _ in 0..<4 {
          _ = try await service.commit(
            .with {
              $0.database = Self.root
              $0.writes = [Self.writing("d0", String(repeating: "\(round)", count: 100_000))]
            },
            auth: .admin
          )
        }
        listening.cancel()
        _ = await listening.result
        #expect(budget.heldBytes == 0)
      }
    }
  }
}
