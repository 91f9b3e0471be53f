import NIOCore
import NIOPosix

/// A connection with one request at a time, used on its event loop only.
protocol LoadConnection: AnyObject {
  /// Sends a request and calls `report` once with its reply.
  func send(_ body: ByteBuffer, then report: @escaping (Result<ByteBuffer, any Error>) -> Void)

  /// Closes the connection; a request in progress fails.
  func close()
}

/// A failure of a measurement.
struct BenchmarkError: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Closed-loop clients: each sends its next request when it has the reply to the last one.
struct Load: Sendable {
  var clients: Int
  /// The time before the measurement, in which caches, connections and compilers get ready.
  var warmUp: Duration
  var duration: Duration

  /// The load generator's single thread; it shares the machine's cores with the server.
  static let eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

  /// The maximum wait for replies after the end of a load.
  private static let replyTimeMax = TimeAmount.seconds(10)

  /// A function that opens a connection on an event loop.
  typealias Connect = @Sendable (any EventLoop) -> EventLoopFuture<any LoadConnection>
  /// A function that creates the body of a client's request.
  typealias Body = @Sendable (_ client: Int, _ number: Int) throws -> ByteBuffer

  /// Runs the load; throws if any reply is a failure.
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
          // The event loop's callbacks retain it until its promise is completed.
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
  /// Fails the promise if it is not completed by `deadline`.
  func failing(at deadline: NIODeadline) {
    let timer = futureResult.eventLoop.scheduleTask(deadline: deadline) {
      fail(BenchmarkError("A server did not answer in time."))
    }
    futureResult.whenComplete { _ in timer.cancel() }
  }
}

/// A client of a load.
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

/// The number and durations of the requests that a load completed.
struct Measurement: Sendable {
  /// The duration of each request, shortest first.
  private let nanoseconds: [Int64]
  private let duration: Duration

  init(nanoseconds: [Int64], duration: Duration) {
    self.nanoseconds = nanoseconds.sorted()
    self.duration = duration
  }

  var count: Int { nanoseconds.count }

  var perSecond: Double { Double(nanoseconds.count) / (duration / .seconds(1)) }

  /// The time within which this share of the requests completed; 0 if there were none.
  func milliseconds(_ share: Double) -> Double {
    guard !nanoseconds.isEmpty else { return 0 }
    let index = min(nanoseconds.count - 1, Int(Double(nanoseconds.count) * share))
    return Double(nanoseconds[index]) / 1e6
  }
}
