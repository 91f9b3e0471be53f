import FirestoreClient
import OutboundHTTP

/// A value now and after every change, as an asynchronous sequence.
///
/// ```swift
/// for try await snapshot in database.reference("typing/c1").observe() {
///   show(try snapshot.data() as [String: Typing]?)
/// }
/// ```
///
/// The sequence also has a snapshot if there is no value. If the connection fails, listening
/// resumes automatically; a snapshot follows if the value has changed meanwhile. While your code
/// handles a snapshot, the server waits.
///
/// Each loop listens separately. It stops when its task is cancelled or when the loop is left.
/// Throws `DatabaseError` for permanent failures, as `DatabaseReference.get()` does, and
/// `permissionDenied` once the rules no longer allow the value to be read.
public struct ValueSnapshots: AsyncSequence, Sendable {
  /// The value as of one moment.
  public typealias Element = DatabaseSnapshot

  let query: ValueQuery

  /// Starts to listen.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(listening: Listening { [query] in try await ValueListener(query).run($0) })
  }

  /// The iterator of one loop, which listens until it is released.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let listening: Listening<DatabaseSnapshot>

    /// Waits for the next snapshot; returns nil if the task is cancelled.
    public mutating func next() async throws -> DatabaseSnapshot? { try await listening.next() }
  }
}

/// A listener whose value outlives its connections.
private actor ValueListener {
  private let query: ValueQuery
  private var stream = ValueStream()
  /// True while a snapshot is handled, and the server waits.
  private var isShowing = false

  init(_ query: ValueQuery) { self.query = query }

  /// Listens until the task is cancelled, and resumes after temporary failures.
  func run(_ show: @escaping @Sendable (DatabaseSnapshot) async -> Void) async throws {
    let calls = query.reference.database.calls
    let retries = calls.retries
    var call = try query.call()
    call.headers["Accept"] = "text/event-stream"
    var failures = 0
    while !Task.isCancelled {
      let before = stream.linesCount
      do {
        try await calls.authorize { [call] credential in
          let body = try await calls.stream(call, as: credential)
          try await DatabaseCalls.mappingErrors { try await self.read(body, show) }
        }
      } catch let error as DatabaseError where error.allowsListeningAgain {
        // The wait below precedes the next attempt.
      }
      failures = stream.linesCount > before ? 1 : failures + 1
      try await retries.sleep(
        retries.backOff.delay(afterFailures: failures, random: retries.random())
      )
    }
  }

  /// Reads a stream until it ends, or the server falls silent.
  private func read(
    _ body: OutboundBody,
    _ show: @escaping @Sendable (DatabaseSnapshot) async -> Void
  ) async throws {
    let calls = query.reference.database.calls
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        for try await line in body.lines(lineBytesMax: calls.settings.responseBytesMax) {
          try await self.take(line, show)
        }
      }
      group.addTask { try await self.watch(calls.retries) }
      try await group.next()
    }
  }

  private func take(
    _ line: String,
    _ show: @escaping @Sendable (DatabaseSnapshot) async -> Void
  ) async throws {
    guard let node = try stream.take(line) else { return }
    isShowing = true
    await show(query.snapshot(node))
    isShowing = false
  }

  /// Returns when no line has arrived for longer than the server may be silent.
  private func watch(_ retries: CallRetries) async throws {
    var count = -1
    while stream.linesCount != count || isShowing {
      count = stream.linesCount
      try await retries.sleep(Self.silenceMax)
    }
  }

  /// The time without any line after which the connection counts as lost.
  ///
  /// The server sends one at least every 30 seconds.
  private static let silenceMax = Duration.seconds(75)
}
