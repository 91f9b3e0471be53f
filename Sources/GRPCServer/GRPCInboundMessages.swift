import NIOCore

/// The requests of a bidirectional call on their way to the handler.
struct GRPCInboundMessages: AsyncSequence, Sendable {
  typealias Element = ByteBuffer
  fileprivate typealias Strategy = NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark
  fileprivate typealias Producer = NIOThrowingAsyncSequenceProducer<
    ByteBuffer, any Error, Strategy, Demand
  >

  /// Requests held for a busy handler before the stream is no longer read.
  ///
  /// HTTP/2's window bounds what the client can send after that.
  private static let heldMax = 16
  private static let heldMin = 4

  private let producer: Producer

  /// The sequence, and the end that the stream feeds; `resume` is called, on any thread, when the
  /// handler has taken enough.
  static func make(resume: @escaping @Sendable () -> Void) -> (GRPCInboundMessages, Source) {
    let made = Producer.makeSequence(
      elementType: ByteBuffer.self,
      failureType: (any Error).self,
      backPressureStrategy: Strategy(lowWatermark: heldMin, highWatermark: heldMax),
      finishOnDeinit: true,
      delegate: Demand(resume: resume)
    )
    return (GRPCInboundMessages(producer: made.sequence), Source(source: made.source))
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(iterator: producer.makeAsyncIterator())
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var iterator: Producer.AsyncIterator

    mutating func next() async throws -> ByteBuffer? {
      try await iterator.next()
    }
  }

  /// The feeding end.
  struct Source: Sendable {
    fileprivate let source: Producer.Source

    /// Whether the handler wants more.
    enum Wish {
      case produceMore
      case stopProducing
    }

    func yield(_ message: ByteBuffer) -> Wish {
      switch source.yield(message) {
      case .stopProducing: .stopProducing
      case .produceMore, .dropped: .produceMore
      }
    }

    func finish() {
      source.finish()
    }

    func finish(_ error: any Error) {
      source.finish(error)
    }
  }

  fileprivate struct Demand: NIOAsyncSequenceProducerDelegate {
    fileprivate let resume: @Sendable () -> Void

    func produceMore() {
      resume()
    }

    func didTerminate() {
      // The handler reads no more; what still comes is dropped, so that its end is seen.
      resume()
    }
  }
}
