import NIOCore
import Synchronization
import Testing

@testable import WorkerPool

@Suite("Reply stream")
struct ResponseStreamTests {
  private struct Cut: Error {}

  private let piece = ByteBuffer(string: "0123456789")

  @Test("Pieces come in order, then the end")
  func order() async throws {
    let stream = ResponseStream(bufferedBytesMax: 100) {}
    #expect(stream.push(ByteBuffer(string: "a")))
    #expect(stream.push(ByteBuffer(string: "b")))
    stream.finish(.success(()))

    #expect(try await stream.next() == ByteBuffer(string: "a"))
    #expect(try await stream.next() == ByteBuffer(string: "b"))
    #expect(try await stream.next() == nil)
    #expect(try await stream.next() == nil)
  }

  @Test("A slow reader stops the connection, which goes on once half is read")
  func backPressure() async throws {
    let resumed = Mutex(0)
    let stream = ResponseStream(bufferedBytesMax: 40) { resumed.withLock { $0 += 1 } }
    for _ in 0..<4 { #expect(stream.push(piece)) }

    #expect(!stream.push(piece))
    for _ in 0..<2 { _ = try await stream.next() }
    #expect(resumed.withLock { $0 } == 0)
    _ = try await stream.next()
    #expect(resumed.withLock { $0 } == 1)
    #expect(stream.push(piece))
  }

  @Test("An error comes after what arrived before it, and only the first end counts")
  func error() async throws {
    let stream = ResponseStream(bufferedBytesMax: 40) {}
    _ = stream.push(piece)
    stream.finish(.failure(Cut()))
    stream.finish(.success(()))

    #expect(try await stream.next() == piece)
    await #expect(throws: Cut.self) { try await stream.next() }
  }

  @Test("A waiting reader gets the next piece, or the end, at once")
  func waiting() async throws {
    let stream = ResponseStream(bufferedBytesMax: 40) {}
    async let first = stream.next()
    _ = stream.push(piece)
    #expect(try await first == piece)

    async let second = stream.next()
    stream.finish(.success(()))
    #expect(try await second == nil)
  }

  @Test("A reader that is cancelled ends the stream")
  func cancelled() async throws {
    let stream = ResponseStream(bufferedBytesMax: 40) {}
    let reader = Task { try await stream.next() }
    reader.cancel()

    await #expect(throws: CancellationError.self) { try await reader.value }
    await #expect(throws: CancellationError.self) { try await stream.next() }
  }
}
