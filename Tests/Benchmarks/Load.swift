import NIOCore
import NIOPosix

/// A connection that carries one exchange at a time; to be used on its event loop only.
protocol LoadConnection: AnyObject {
  /// Sends a request and reports its reply once.
  func send(_ body: ByteBuffer, then report: @escaping (Result<ByteBuffer, any Error>) -> Void)

  /// Ends the connection; an exchange under way fails.
  func close()
}

/// What went wrong in a measurement.
struct BenchmarkError: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Clients that each send the next request when the last one's reply is there.
struct Load: Sendable {
  var clients: Int
  /// Load that is not counted: caches, connections and, in the peer, the compiler get ready.
  var warmUp: Duration
  var duration: Duration

  /// The generator's threads: one, for it shares the machine's cores with what it measures.
  static let eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

  /// How long after its end a load waits for replies.
  private static let replyTimeMax = TimeAmount.seconds(10)

  /// Opens a connection on an event loop.
  typealias Connect = @Sendable (any EventLoop) -> EventLoopFuture<any LoadConnection>
  /// The body of a client's request, by the client and the number of the request.
  typealias Body = @Sendable (_ client: Int, _ number: Int) throws -> ByteBuffer

  /// Runs the load; throws when any reply was a failure.
  func run(_ connect: @escaping Connect, body: @escaping Body) async throws -> Measurement {
    try Task.checkCancellation()
    let loop = Self.eventLoops.next()
    let begin = NIODeadline.now() + TimeAmount(warmUp)
    let end = begin + TimeAmount(duration)
    let samples = try await EventLoopFuture.whenAllSucceed(
      (0..<clients).map { client in
        connect(loop).flatMap { connection in
          let promise = loop.makePromise(of: [Int64].self)
          promise.failing(at: end + Self.replyTimeMax)
          // The event loop's callbacks hold it until its promise is kept.
          ClosedLoop(
            connection: connection,
            begin: begin,
            end: end,
            promise: promise,
            body: { try body(client, $0) }
          ).next()
          return promise.futureResult
        }
      },
      on: loop
    ).get()
    return Measurement(nanoseconds: samples.flatMap(\.self), duration: duration)
  }
}

extension EventLoopPromise where Value: Sendable {
  /// Fails the promise when it has not been kept by then.
  func failing(at deadline: NIODeadline) {
    let timer = futureResult.eventLoop.scheduleTask(deadline: deadline) {
      fail(BenchmarkError("A server did not answer in time."))
    }
    futureResult.whenComplete { _ in timer.cancel() }
  }
}

/// One client of a load.
private final class ClosedLoop {
  private let connection: any LoadConnection
  private let begin: NIODeadline
  private let end: NIODeadline
  private let promise: EventLoopPromise<[Int64]>
  private let body: (Int) throws -> ByteBuffer
  private var number = 0
  private var samples: [Int64] = []

  init(
    connection: any LoadConnection,
    begin: NIODeadline,
    end: NIODeadline,
    promise: EventLoopPromise<[Int64]>,
    body: @escaping (Int) throws -> ByteBuffer
  ) {
    self.connection = connection
    self.begin = begin
    self.end = end
    self.promise = promise
    self.body = body
  }

  func next() {
    let request: ByteBuffer
    do {
      request = try body(number)
    } catch {
      return finish(.failure(error))
    }
    number += 1
    let sent = NIODeadline.now()
    connection.send(request) { reply in
      let now = NIODeadline.now()
      if case .failure(let error) = reply { return self.finish(.failure(error)) }
      guard now < self.end else { return self.finish(.success(self.samples)) }
      if now >= self.begin { self.samples.append((now - sent).nanoseconds) }
      self.next()
    }
  }

  private func finish(_ result: Result<[Int64], any Error>) {
    promise.completeWith(result)
    connection.close()
  }
}

/// How many exchanges a load completed, and how long they took.
struct Measurement: Sendable {
  /// Each exchange, shortest first.
  private let nanoseconds: [Int64]
  private let duration: Duration

  init(nanoseconds: [Int64], duration: Duration) {
    self.nanoseconds = nanoseconds.sorted()
    self.duration = duration
  }

  var count: Int { nanoseconds.count }

  var perSecond: Double { Double(nanoseconds.count) / (duration / .seconds(1)) }

  /// The time within which this share of the exchanges ended; 0 when there was none.
  func milliseconds(_ share: Double) -> Double {
    guard !nanoseconds.isEmpty else { return 0 }
    let index = min(nanoseconds.count - 1, Int(Double(nanoseconds.count) * share))
    return Double(nanoseconds[index]) / 1e6
  }
}
