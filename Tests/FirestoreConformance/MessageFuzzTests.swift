import DocumentModel
import DocumentStore
import EventLog
import FirestoreEmulator
import FirestoreProtos
import FirestoreWire
import Foundation
import Identity
import Logging
import QueryEngine
import RuntimeSupport
import StorageEngine
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

/// What clients never send: real messages with parts changed, cut, doubled and mixed.
///
/// `HEARTH_FUZZ_SECONDS` sets how long each call is tried; a second by default.
@Suite("Damaged messages")
struct MessageFuzzTests {
  /// Codes that say that the server is at fault, upon which clients try for minutes.
  private static let faults: [StatusCode] = [.internal, .unknown, .unavailable, .dataLoss]
  private static let seconds =
    ProcessInfo.processInfo.environment["HEARTH_FUZZ_SECONDS"].flatMap { Double($0) } ?? 1

  private typealias Query = Google_Firestore_V1_StructuredQuery

  private static let database = "projects/p/databases/(default)"
  private static let documents = database + "/documents"

  // MARK: Seeds

  private static func value(_ number: Int64) -> Google_Firestore_V1_Value {
    .with { $0.integerValue = number }
  }

  private static let fields: [FieldName: Google_Firestore_V1_Value] = [
    "n": value(1), "s": .with { $0.stringValue = "text" },
    "a": .with { $0.arrayValue.values = [value(1), .with { $0.nullValue = .nullValue }] },
    "m": .with { $0.mapValue.fields = ["x": .with { $0.doubleValue = 1.5 }] },
    "r": .with { $0.referenceValue = documents + "/c/a" },
    "t": .with { $0.timestampValue.seconds = 1 },
  ]

  private static let query = Query.with {
    $0.from = [.with { $0.collectionID = "c" }]
    $0.where.compositeFilter = .with {
      $0.op = .or
      $0.filters = [
        .with {
          $0.fieldFilter = .with {
            $0.field.fieldPath = "n"
            $0.op = .lessThan
            $0.value = value(5)
          }
        },
        .with {
          $0.fieldFilter = .with {
            $0.field.fieldPath = "a"
            $0.op = .arrayContainsAny
            $0.value.arrayValue.values = [value(1), value(2)]
          }
        },
      ]
    }
    $0.orderBy = [
      .with {
        $0.field.fieldPath = "n"
        $0.direction = .descending
      }
    ]
    $0.startAt = .with {
      $0.values = [value(4)]
      $0.before = true
    }
    $0.limit.value = 3
    $0.offset = 1
  }

  private static let writes: [Google_Firestore_V1_Write] = [
    .with {
      $0.update.name = documents + "/c/a"
      $0.update.fields = fields
      $0.updateMask.fieldPaths = ["n", "m.x"]
      $0.updateTransforms = [
        .with {
          $0.fieldPath = "k"
          $0.increment = value(1)
        },
        .with {
          $0.fieldPath = "at"
          $0.setToServerValue = .requestTime
        },
      ]
    },
    .with {
      $0.delete = documents + "/c/b"
      $0.currentDocument.exists = false
    },
  ]

  private static let targets: [Google_Firestore_V1_Target] = [
    .with {
      $0.targetID = 2
      $0.query.parent = documents
      $0.query.structuredQuery = query
    },
    .with {
      $0.targetID = 4
      $0.query.parent = documents
      $0.query.structuredQuery.from = [.with { $0.collectionID = "c" }]
      $0.resumeToken = Data(repeating: 7, count: 29)
      $0.expectedCount.value = 3
    },
    .with {
      $0.targetID = 6
      $0.documents.documents = [documents + "/c/a", documents + "/c/zz"]
      $0.readTime.seconds = 1_700_000_000
      $0.once = true
    },
  ]

  // MARK: Damage

  /// One to four changes to a message's bytes.
  private static func damage(
    _ bytes: [UInt8],
    _ others: [[UInt8]],
    _ random: inout SeededGenerator
  ) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      guard !bytes.isEmpty else { return bytes }
      let start = Int.random(in: bytes.indices, using: &random)
      let end = min(bytes.count, start + Int.random(in: 1...16, using: &random))
      switch Int.random(in: 0..<7, using: &random) {
      case 0: bytes[start] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 1: bytes[start] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
      case 2: bytes.removeSubrange(start..<end)
      case 3: bytes.insert(contentsOf: bytes[start..<end], at: start)
      case 4: bytes.removeLast(bytes.count - start)
      case 5:
        let other = others.randomElement(using: &random) ?? []
        bytes.insert(contentsOf: other.prefix(64), at: start)
      default: bytes.swapAt(start, bytes.count - 1)
      }
    }
    return bytes
  }

  /// A damaged message that still can be read.
  private static func damaged<Request: Message>(
    _ seeds: [Request],
    _ random: inout SeededGenerator
  ) throws -> Request {
    let bytes: [[UInt8]] = try seeds.map { try $0.serializedBytes() }
    while true {
      let seed = bytes.randomElement(using: &random) ?? []
      if let request = try? Request(serializedBytes: damage(seed, bytes, &random)) {
        return request
      }
    }
  }

  // MARK: Calls

  private static func withService(
    _ body: (FirestoreService, LogCapture) async throws -> Void
  ) async throws {
    let log = LogCapture()
    let logger = log.logger(level: .error)
    let storage = MemoryStorage()
    let engine = QueryRunner(logger: logger)
    let tailer = EventTailer(storage: storage, logger: logger)
    let store = DocumentDatabase(
      storage: storage,
      queryRunner: engine,
      tailer: tailer,
      now: { Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000)) },
      clock: ContinuousClock(),
      configuration: .init(lockWait: .milliseconds(10)),
      logger: logger
    )
    let running = Task {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await tailer.run() }
        group.addTask { try await store.run() }
        try await group.waitForAll()
      }
    }
    try await body(FirestoreService(store: store, project: "p", logger: logger), log)
    running.cancel()
    _ = await running.result
    #expect(log.entries.map(\.message) == [])
  }

  /// Tries damaged requests for a while; whatever is wrong must be the client's mistake.
  private func fuzz<Request: Message>(
    _ seeds: [Request],
    _ call: @Sendable (FirestoreService, [Request]) async throws -> Void,
    count: Int = 1
  ) async throws {
    var random = SeededGenerator.forTest()
    try await Self.withService { service, _ in
      let end = ContinuousClock.now + .seconds(Self.seconds)
      while ContinuousClock.now < end {
        let requests = try (0..<count).map { _ in try Self.damaged(seeds, &random) }
        do {
          try await call(service, requests)
        } catch is CancellationError {
          continue
        } catch {
          let told = service.told(error)
          if Self.faults.contains(told.statusCode) {
            Issue.record(
              "\(told.statusCode) \(told.statusMessage), seed \(random.seed): \(requests)"
            )
            return
          }
        }
      }
    }
  }

  @Test("A damaged commit is the client's mistake")
  func commit() async throws {
    let seed = Google_Firestore_V1_CommitRequest.with {
      $0.database = Self.database
      $0.writes = Self.writes
    }
    try await fuzz([seed]) { service, requests in
      _ = try await service.commit(requests[0], auth: .admin)
    }
  }

  @Test("A damaged batch of writes is the client's mistake")
  func batchWrite() async throws {
    let seed = Google_Firestore_V1_BatchWriteRequest.with {
      $0.database = Self.database
      $0.writes = Self.writes
    }
    try await fuzz([seed]) { service, requests in
      let reply = try await service.batchWrite(requests[0], auth: .admin)
      for status in reply.status where Self.faults.contains(where: { $0.rawValue == status.code }) {
        throw StatusError(.internal, status.message)
      }
    }
  }

  @Test("A damaged query is the client's mistake")
  func runQuery() async throws {
    let seed = Google_Firestore_V1_RunQueryRequest.with {
      $0.parent = Self.documents
      $0.structuredQuery = Self.query
    }
    try await fuzz([seed]) { service, requests in
      _ = try await service.runQuery(requests[0], auth: .admin)
    }
  }

  @Test("A damaged look-up is the client's mistake")
  func batchGet() async throws {
    let seed = Google_Firestore_V1_BatchGetDocumentsRequest.with {
      $0.database = Self.database
      $0.documents = [Self.documents + "/c/a", Self.documents + "/c/b"]
      $0.mask.fieldPaths = ["n", "m.`x.y`"]
      $0.newTransaction.readWrite.retryTransaction = Data([1, 2, 3])
    }
    try await fuzz([seed]) { service, requests in
      _ = try await service.batchGetDocuments(requests[0], auth: .admin)
    }
  }

  @Test("Damaged messages of a listener end a target or its stream, as the client's mistake")
  func listen() async throws {
    var seeds = Self.targets.map { target in
      Google_Firestore_V1_ListenRequest.with {
        $0.database = Self.database
        $0.addTarget = target
      }
    }
    seeds.append(.with { $0.removeTarget = 2 })
    try await fuzz(
      seeds,
      { service, requests in
        let queue = Mutex(requests.filter { $0.database.isEmpty || $0.database == Self.database })
        try await service.listen(
          to: { queue.withLock { $0.popLast() } },
          resourcePrefix: Self.database,
          auth: .admin
        ) { replies in
          for reply in replies {
            guard case .target(_, _, let cause?, _, _) = reply else { continue }
            if Self.faults.contains(cause.statusCode) { throw cause }
          }
        }
      },
      count: 6
    )
  }

  @Test("Damaged messages of a write stream end it, as the client's mistake")
  func write() async throws {
    var seeds = (0..<3).map { _ in
      Google_Firestore_V1_WriteRequest.with {
        $0.database = Self.database
        $0.writes = Self.writes
        $0.streamToken = Data([0, 0, 0, 0, 0, 0, 0, 1])
      }
    }
    seeds.append(.with { $0.streamID = "s" })
    try await fuzz(
      seeds,
      { service, requests in
        let queue = Mutex(requests + [.with { $0.database = Self.database }])
        try await service.write(
          from: { queue.withLock { $0.popLast() } },
          resourcePrefix: Self.database,
          auth: .admin
        ) { _ in }
      },
      count: 4
    )
  }
}
