import Synchronization
import Testing

@testable import FlowControl

@Suite("Parallel map")
struct ParallelMapTests {
  private struct Failure: Error, Equatable {
    var number: Int
  }

  /// Maps numbers from 0 on and returns the outputs that were passed on, with the error at the end.
  ///
  /// `transform` may fail; the input at `inputFailsAt` fails itself.
  private func map(
    _ count: Int,
    width: Int = 3,
    inputFailsAt failing: Int? = nil,
    by transform: @escaping @Sendable (Int) throws -> Int
  ) async -> (outputs: [Int], error: Failure?) {
    var outputs: [Int] = []
    var next = 0
    do {
      try await forEachMapped(
        {
          if next == failing { throw Failure(number: next) }
          defer { next += 1 }
          return next < count ? next : nil
        },
        width: width,
        by: transform
      ) { outputs.append($0) }
      return (outputs, nil)
    } catch {
      return (outputs, error as? Failure)
    }
  }

  @Test("Outputs arrive in the order of the inputs", arguments: [0, 1, 2, 3, 4, 5, 1_000])
  func order(count: Int) async {
    let (outputs, error) = await map(count) { number in
      // The first of three inputs is the slowest.
      number + (0..<(3 - number % 3) * 1_000).reduce(0) { $0 &+ $1 &* 0 }
    }
    #expect(outputs == Array(0..<count))
    #expect(error == nil)
  }

  @Test("An error comes after all outputs before it, and is the first one")
  func errors() async {
    for failing in 0..<8 {
      let mapped = await map(20) { number in
        if number >= failing { throw Failure(number: number) }
        return number
      }
      #expect(mapped.outputs == Array(0..<failing))
      #expect(mapped.error == Failure(number: failing))
      let read = await map(20, inputFailsAt: failing) { $0 }
      #expect(read.outputs == Array(0..<failing))
      #expect(read.error == Failure(number: failing))
      let both = await map(20, inputFailsAt: failing + 1) { number in
        if number == failing { throw Failure(number: number) }
        return number
      }
      #expect(both.outputs == Array(0..<failing))
      #expect(both.error == Failure(number: failing))
    }
  }

  @Test("No more inputs are read than the width and the one that is passed on")
  func bound() async throws {
    var read = 0
    var mostAhead = 0
    var passed = 0
    try await forEachMapped(
      {
        read += 1
        mostAhead = max(mostAhead, read - passed)
        return read <= 100 ? read : nil
      },
      width: 4,
      by: { $0 }
    ) { _ in passed += 1 }
    #expect(passed == 100)
    #expect(mostAhead == 5)
  }

  @Test("A task that is cancelled throws, and passes nothing more on")
  func cancelled() async {
    let outputs = Mutex(0)
    let task = Task {
      try await forEachMapped({ 1 }, width: 2, by: { $0 }) { _ in
        outputs.withLock { $0 += 1 }
        withUnsafeCurrentTask { $0?.cancel() }
      }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(outputs.withLock(\.self) == 1)
  }
}
