import FirestoreProtos
import NIOCore
import NIOPosix
import SwiftProtobuf

/// Listeners that all have one frequently changing document among their results.
struct ListenLoad: Sendable {
  var firestore: FirestoreLoad
  var listeners: Int
  /// True if each listener has a different query.
  var areDifferent = false
  /// True if each listener is a web page with its own channel, not a stream of a shared connection.
  var areWebPages = false
  /// The listeners' token; nil for the token that makes the changes.
  var token: String?
  /// The collection of the documents.
  var collection = "listened"
  /// Documents that each change writes in addition to the one that the listeners have.
  var alsoChanged: [String] = []

  /// The number of documents in each listener's results.
  static let documents = 50
  private static let streamsOfConnection = 100
  private static let timeMax = TimeAmount.seconds(60)

  /// The latencies and the traffic of the changes.
  struct Outcome: Sendable {
    /// The times from sending a commit to each listener's snapshot.
    var delays: Measurement
    /// The number of documents sent to a listener for each changed document.
    var documentsSent: Double
  }

  /// Stores the documents.
  func prepare() async throws {
    try await firestore.createAll((0..<Self.documents).map { "\(collection)/d\($0)" })
  }

  /// Opens the listeners, makes the changes and closes the listeners.
  ///
  /// Each change starts when all listeners have seen the one before.
  func measure(changes: Int) async throws -> Outcome {
    let loop = Load.eventLoops.next()
    let body = try firestore.change(of: ["\(collection)/d0"] + alsoChanged)
    return try await firestore.connectForCommits(on: loop).flatMap { commits in
      let promise = loop.makePromise(of: Outcome.self)
      promise.failing(at: .now() + Self.timeMax)
      let watch = ChangeWatch(
        listeners: listeners,
        changes: changes,
        commits: commits,
        body: body,
        promise: promise
      )
      return open(on: loop) { watch.take($1, of: $0) }.flatMap { closings in
        promise.futureResult.always { _ in
          watch.close()
          for close in closings { close() }
        }
      }
    }.get()
  }

  /// Opens the listeners and runs `body` once all are current.
  func hold<Output: Sendable>(_ body: @Sendable () async throws -> Output) async throws -> Output {
    let loop = Load.eventLoops.next()
    let promise = loop.makePromise(of: Void.self)
    promise.failing(at: .now() + Self.timeMax * 4)
    let count = CurrentCount(listeners, promise)
    let closings = try await open(on: loop) { _, reply in count.take(reply) }.get()
    try await promise.futureResult.get()
    let output = try await body()
    loop.execute { for close in closings { close() } }
    return output
  }

  /// Opens the listeners; call the returned closures on the loop to close them.
  private func open(
    on loop: any EventLoop,
    _ report: @escaping @Sendable (Int, Result<ListenConnection.Reply, any Error>) -> Void
  ) -> EventLoopFuture<[@Sendable () -> Void]> {
    let connections: [EventLoopFuture<@Sendable () -> Void>]
    if areWebPages {
      connections = (0..<listeners).map { number in
        loop.makeCompletedFuture { try request(number).jsonString() }.flatMap { request in
          ChannelConnection.connect(
            to: firestore.address,
            database: firestore.database,
            token: token ?? firestore.token,
            on: loop,
            request: request
          ) { report(number, $0) }.map { connection in { connection.close() } }
        }
      }
    } else {
      connections = stride(from: 0, to: listeners, by: Self.streamsOfConnection).map { first in
        let numbers = first..<min(first + Self.streamsOfConnection, listeners)
        return loop.makeCompletedFuture {
          try numbers.map { ByteBuffer(bytes: try request($0).serializedBytes() as [UInt8]) }
        }.flatMap { requests in
          ListenConnection.connect(
            to: firestore.address,
            database: firestore.database,
            token: token ?? firestore.token,
            on: loop,
            requests: requests
          ) { report(first + $0, $1) }.map { connection in { connection.close() } }
        }
      }
    }
    return EventLoopFuture.whenAllSucceed(connections, on: loop)
  }

  private func request(_ number: Int) -> Google_Firestore_V1_ListenRequest {
    var request = Google_Firestore_V1_ListenRequest()
    request.database = firestore.database
    request.addTarget.targetID = 2
    let segments = collection.split(separator: "/").map(String.init)
    request.addTarget.query.parent = ([firestore.database, "documents"] + segments.dropLast())
      .joined(separator: "/")
    request.addTarget.query.structuredQuery.from = [
      .with { $0.collectionID = segments.last ?? "" }
    ]
    if areDifferent {
      request.addTarget.query.structuredQuery.where.fieldFilter = .with {
        $0.field.fieldPath = "n"
        $0.op = .greaterThan
        $0.value.integerValue = -1 - Int64(number)
      }
    }
    return request
  }
}

/// A counter of listeners that are not current yet.
private final class CurrentCount: @unchecked Sendable {
  // Accessed only on the event loop of the promise.
  private var missing: Int
  private let promise: EventLoopPromise<Void>

  init(_ count: Int, _ promise: EventLoopPromise<Void>) {
    missing = count
    self.promise = promise
  }

  func take(_ reply: Result<ListenConnection.Reply, any Error>) {
    switch reply {
    case .failure(let error): promise.fail(error)
    case .success(let reply):
      guard reply.targetChange.targetChangeType == .current else { return }
      missing -= 1
      if missing == 0 { promise.succeed(()) }
    }
  }
}

/// Makes one change after another and records when each listener receives a snapshot of it.
///
/// `@unchecked Sendable`: accessed only on the event loop of its promise.
private final class ChangeWatch: @unchecked Sendable {
  private let changes: Int
  private let commits: any LoadConnection
  private let body: ByteBuffer
  private let promise: EventLoopPromise<ListenLoad.Outcome>
  private let began = NIODeadline.now()
  private var sent = NIODeadline.now()
  private var isCurrent: [Bool]
  private var hasDocument: [Bool]
  private var missing: Int
  private var changed = 0
  private var delays: [Int64] = []
  private var documents = 0

  init(
    listeners: Int,
    changes: Int,
    commits: any LoadConnection,
    body: ByteBuffer,
    promise: EventLoopPromise<ListenLoad.Outcome>
  ) {
    self.changes = changes
    self.commits = commits
    self.body = body
    self.promise = promise
    isCurrent = Array(repeating: false, count: listeners)
    hasDocument = isCurrent
    missing = listeners
  }

  func close() { commits.close() }

  func take(_ reply: Result<ListenConnection.Reply, any Error>, of listener: Int) {
    switch reply {
    case .failure(let error): promise.fail(error)
    case .success(let reply):
      switch reply.responseType {
      case .documentChange where changed > 0:
        documents += 1
        hasDocument[listener] = true
      case .targetChange(let change) where change.targetChangeType == .current && changed == 0:
        isCurrent[listener] = true
      case .targetChange(let change)
      where change.targetChangeType == .noChange && change.targetIds.isEmpty
        && change.hasReadTime:
        notified(listener)
      default: break
      }
    }
  }

  private func notified(_ listener: Int) {
    if changed == 0 {
      guard isCurrent[listener] else { return }
      isCurrent[listener] = false
    } else {
      guard hasDocument[listener] else { return }
      hasDocument[listener] = false
      let now = NIODeadline.now()
      delays.append(Int64(now.uptimeNanoseconds) - Int64(sent.uptimeNanoseconds))
    }
    missing -= 1
    if missing == 0 { change() }
  }

  private func change() {
    guard changed < changes else {
      let listeners = isCurrent.count
      let time = NIODeadline.now() - began
      return promise.succeed(
        ListenLoad.Outcome(
          delays: Measurement(
            nanoseconds: delays,
            duration: .nanoseconds(time.nanoseconds)
          ),
          documentsSent: Double(documents) / Double(listeners * changes)
        )
      )
    }
    changed += 1
    missing = isCurrent.count
    sent = .now()
    commits.send(body) { [promise] reply in
      if case .failure(let error) = reply { promise.fail(error) }
    }
  }
}
