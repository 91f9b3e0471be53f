import NIOCore
import NIOPosix

/// A fixed number of requests; each client sends its requests one after another.
struct RequestSeries: Sendable {
  var address: Address
  var path: String
  /// The value of the `Authorization` header; nil for none.
  var authorization: String?
  /// True if the expected status is 201 instead of 200.
  var isCreation = false

  /// A reply and its duration.
  struct Reply: Sendable {
    var nanoseconds: Int64
    var body: ByteBuffer
  }

  private static let timeMax = TimeAmount.seconds(60)

  /// Sends the requests and returns the replies in the order of the requests' numbers.
  func run(
    count: Int,
    clients: Int = 1,
    body: @escaping @Sendable (Int) -> ByteBuffer
  ) async throws -> [Reply] {
    try Task.checkCancellation()
    let loop = Load.eventLoops.next()
    let parts = try await EventLoopFuture.whenAllSucceed(
      (0..<clients).map { client in
        HTTP1Connection.connect(
          to: address,
          path: path,
          authorization: authorization,
          expecting: isCreation ? 201 : 200,
          on: loop
        ).flatMap { connection in
          let promise = loop.makePromise(of: [Reply].self)
          promise.failing(at: .now() + Self.timeMax)
          let numbers = Array(stride(from: client, to: count, by: clients))
          // The event loop's callbacks retain it until its promise is completed.
          Client(connection: connection, numbers: numbers, promise: promise, body: body).next()
          return promise.futureResult
        }
      },
      on: loop
    ).get()
    return (0..<count).map { parts[$0 % clients][$0 / clients] }
  }

  private final class Client {
    private let connection: any LoadConnection
    private let numbers: [Int]
    private let promise: EventLoopPromise<[Reply]>
    private let body: (Int) -> ByteBuffer
    private var replies: [Reply] = []

    init(
      connection: any LoadConnection,
      numbers: [Int],
      promise: EventLoopPromise<[Reply]>,
      body: @escaping (Int) -> ByteBuffer
    ) {
      self.connection = connection
      self.numbers = numbers
      self.promise = promise
      self.body = body
    }

    func next() {
      guard replies.count < numbers.count else { return finish(.success(replies)) }
      let request = body(numbers[replies.count])
      let sent = NIODeadline.now()
      connection.send(request) { reply in
        switch reply {
        case .success(let body):
          let nanoseconds = (NIODeadline.now() - sent).nanoseconds
          self.replies.append(Reply(nanoseconds: nanoseconds, body: body))
          self.next()
        case .failure(let error): self.finish(.failure(error))
        }
      }
    }

    private func finish(_ result: Result<[Reply], any Error>) {
      promise.completeWith(result)
      connection.close()
    }
  }
}
