import DocumentModel
import DocumentStore
import EventLog
import FirestoreEmulator
import FirestoreProtos
import FirestoreWire
import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identity
import Logging
import NIOCore
import QueryEngine
import SecurityRules
import StatusCodes
import StorageEngine
import SwiftProtobuf
import Synchronization
import TestSupport

/// A fuzz target for Firestore's endpoints and the rules compiler, which accept any bytes.
///
/// The first byte of an input selects the endpoint; 255 selects security rules. The rest depends on
/// the endpoint:
///
/// - A call is followed by its message.
/// - A stream is followed by its messages, each after its length in two big-endian bytes.
/// - An HTTP request is its method, a space, its target, a newline, and its body.
package final class FuzzTarget: Sendable {
  /// The endpoints, numbered by the remainder of the first byte.
  package enum Endpoint: UInt8, CaseIterable {
    case commit, batchWrite, runQuery, runAggregationQuery, batchGetDocuments, listDocuments
    case listen, write, http, listenChannel, writeChannel

    /// Selects the endpoint of an input by the remainder of its first byte.
    init?(_ first: UInt8) { self.init(rawValue: first % UInt8(Self.allCases.count)) }
  }

  /// Inputs that cover all code that any known input covers; found by `make fuzz`.
  ///
  /// Throws if the file cannot be read.
  package static func corpus() throws -> [[UInt8]] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "corpus.base64")
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap {
      Data(base64Encoded: String($0)).map { Array($0) }
    }
  }

  /// Codes that blame the server; clients retry them for minutes.
  private static let faults: Set<StatusCode> = [.internal, .unknown, .unavailable, .dataLoss]
  private static let database = "projects/p/databases/(default)"

  private let service: FirestoreService
  private let log: LogCapture
  private let running: Task<Void, Never>

  /// Creates the endpoints over an empty in-memory store.
  package init() {
    log = LogCapture()
    let logger = log.logger(level: .error)
    let storage = MemoryStorage()
    let tailer = EventTailer(storage: storage, logger: logger)
    let store = DocumentDatabase(
      storage: storage,
      queryRunner: QueryRunner(logger: logger),
      tailer: tailer,
      now: { Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000)) },
      clock: ContinuousClock(),
      configuration: .init(lockWait: .milliseconds(1)),
      logger: logger
    )
    service = FirestoreService(store: store, project: "p", logger: logger)
    running = Task {
      await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await tailer.run() }
        group.addTask { try await store.run() }
        // They end by cancellation.
        while await group.nextResult() != nil {}
      }
    }
  }

  /// Stops the background tasks of the endpoints.
  package func stop() async {
    running.cancel()
    await running.value
  }

  /// Runs an input; returns a description of a server fault, or nil.
  package func take(_ input: [UInt8]) async -> String? {
    guard let first = input.first, let endpoint = Endpoint(first) else { return nil }
    if first == Self.rulesByte {
      judge(Array(input.dropFirst()))
      return nil
    }
    do {
      try await take(Array(input.dropFirst()), at: endpoint)
    } catch is BinaryDecodingError {
      // The transport rejects the request.
    } catch is CancellationError {
      // The client has disconnected.
    } catch {
      let reported = service.publicError(for: error)
      if Self.faults.contains(reported.statusCode) {
        return "\(endpoint): \(reported.statusCode) \(reported.statusMessage)"
      }
    }
    return log.entries(atLeast: .error).first.map { "\(endpoint): \($0.message) \($0.metadata)" }
  }

  /// The first byte that selects security rules.
  ///
  /// The rules are compiled and then decide a get and a list.
  private static let rulesByte: UInt8 = 255

  /// A database without documents.
  private struct NoDocuments: RulesDocuments {
    func document(_ path: RulePath, after: Bool) -> RuleValue? { nil }
  }

  private func judge(_ bytes: [UInt8]) {
    // Invalid rules must cause an error and never end the process.
    guard let rules = try? Ruleset(name: "f", content: String(decoding: bytes, as: UTF8.self))
    else { return }
    let path = ["databases", "(default)", "documents", "a"].map { RulesRequest.PathStep.known($0) }
    for (method, last) in [(AccessMethod.get, RulesRequest.PathStep.known("b")), (.list, .unknown)]
    {
      _ = rules.decide(
        RulesRequest(
          method: method,
          path: path + [last],
          time: RuleTimestamp(Timestamp(microseconds: 0)),
          auth: .map(.entries(["uid": .string("u"), "token": .map(.fields(["n": .integer(1)]))])),
          resource: .map(.entries(["data": .map(.fields(["a": .array([.string("b")])]))])),
          query: .map(.entries(["limit": .int(1)])),
          constraints: method == .list
            ? [QueryConstraints([.init(path: ["a"], test: .equal, value: .int(1))])] : []
        ),
        documents: NoDocuments(),
        ledger: AccessLedger(isSingle: true),
        coverage: Coverage()
      )
    }
  }

  private func take(_ bytes: [UInt8], at endpoint: Endpoint) async throws {
    switch endpoint {
    case .commit:
      _ = try await service.commit(.init(serializedBytes: bytes), auth: .admin)
    case .batchWrite:
      let reply = try await service.batchWrite(.init(serializedBytes: bytes), auth: .admin)
      for status in reply.status { try check(status) }
    case .runQuery:
      _ = try await service.runQuery(.init(serializedBytes: bytes), auth: .admin)
    case .runAggregationQuery:
      _ = try await service.runAggregationQuery(.init(serializedBytes: bytes), auth: .admin)
    case .batchGetDocuments:
      _ = try await service.batchGetDocuments(.init(serializedBytes: bytes), auth: .admin)
    case .listDocuments:
      _ = try await service.listDocuments(.init(serializedBytes: bytes), auth: .admin)
    case .listen: try await listen(bytes)
    case .write: try await write(bytes)
    case .http: try await http(bytes)
    case .listenChannel: try await channel("Listen", bytes)
    case .writeChannel: try await channel("Write", bytes)
    }
  }

  private func listen(_ bytes: [UInt8]) async throws {
    let requests = Mutex(
      try Self.messages(bytes).map { try Google_Firestore_V1_ListenRequest(serializedBytes: $0) }[
        ...
      ]
    )
    try await service.listen(
      to: { requests.withLock { $0.popFirst() } },
      resourcePrefix: Self.database,
      auth: .admin
    ) { replies in
      for case .target(_, _, let cause?, _, _) in replies
      where Self.faults.contains(cause.statusCode) {
        throw cause
      }
    }
  }

  private func write(_ bytes: [UInt8]) async throws {
    let requests = Mutex(
      try Self.messages(bytes).map { try Google_Firestore_V1_WriteRequest(serializedBytes: $0) }[
        ...
      ]
    )
    try await service.write(
      from: { requests.withLock { $0.popFirst() } },
      resourcePrefix: Self.database,
      auth: .admin
    ) { _ in }
  }

  private func http(_ bytes: [UInt8]) async throws {
    let halves = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
    let line = String(decoding: halves.first ?? [], as: UTF8.self).split(
      separator: " ",
      maxSplits: 1
    )
    guard line.count == 2, let method = HTTPRequest.Method(String(line[0])) else { return }
    let target = String(line[1])
    // Channels have separate endpoints, and an abandoned channel lasts for a minute.
    guard !target.contains("channel") else { return }
    let response = await service.respond(
      to: request(method, target, halves.count == 2 ? Array(halves[1]) : [])
    )
    try await check(response)
  }

  /// Opens a channel with the messages as JSON, reads its first chunk, and closes it.
  private func channel(_ method: String, _ bytes: [UInt8]) async throws {
    let path = "/google.firestore.v1.Firestore/\(method)/channel"
    let database = #"{"database":"\#(Self.database)"}"#
    let messages = (method == "Write" ? [Array(database.utf8)] : []) + Self.messages(bytes)
    let parts = messages.enumerated().map { index, text in
      "req\(index)___data__="
        + text.map { "%" + String(256 + Int($0), radix: 16).dropFirst() }.joined()
    }
    let form = (["count=\(messages.count)"] + parts).joined(separator: "&")
    let opened = await service.respond(
      to: request(.post, "\(path)?VER=8&RID=1&database=\(Self.database)", Array(form.utf8))
    )
    try await check(opened)
    let opening = String(buffer: try await opened.body.collect(upTo: 1000)).split(separator: "\"")
    guard opening.count > 3 else { return }
    let session = "\(path)?SID=\(opening[3])"
    let back = await service.respond(
      to: request(.get, "\(session)&RID=rpc&AID=0&CI=1&TO=1", [])
    )
    let reported = String(buffer: try await back.body.collect(upTo: 1 << 24))
    _ = await service.respond(to: request(.post, "\(session)&TYPE=terminate", []))
    for fault in Self.faults where reported.contains(#""status":"\#(fault.name)""#) {
      throw StatusError(fault, reported)
    }
  }

  private func request(_ method: HTTPRequest.Method, _ target: String, _ body: [UInt8]) -> Request {
    Request(
      head: HTTPRequest(
        method: method,
        scheme: "http",
        authority: "localhost",
        path: target,
        headerFields: [.authorization: "Bearer owner"]
      ),
      body: .whole(ByteBuffer(bytes: body))
    )
  }

  private func check(_ response: Response) async throws {
    guard response.status.code >= 500, response.status != .notImplemented else { return }
    throw StatusError(
      .internal,
      String(buffer: try await response.body.collect(upTo: 1 << 20))
    )
  }

  private func check(_ status: Google_Rpc_Status) throws {
    if let code = StatusCode(rawValue: Int(status.code)), Self.faults.contains(code) {
      throw StatusError(code, status.message)
    }
  }

  /// Splits the bytes into the messages of a stream.
  private static func messages(_ bytes: [UInt8]) -> [[UInt8]] {
    var rest = bytes[...]
    var messages: [[UInt8]] = []
    while let high = rest.popFirst(), let low = rest.popFirst() {
      let message = rest.prefix(Int(high) << 8 | Int(low))
      messages.append(Array(message))
      rest = rest.dropFirst(message.count)
    }
    return messages
  }
}
