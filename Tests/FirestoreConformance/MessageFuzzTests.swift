import Foundation
import FuzzTargets
import TestSupport
import Testing

/// Sends corrupted messages to all endpoints.
///
/// `make fuzz` runs the same targets for longer, guided by code coverage.
@Suite("Damaged messages")
struct MessageFuzzTests {
  /// Applies one to four changes to an input, after the byte that selects its endpoint.
  private static func damage(
    _ input: [UInt8],
    _ others: [[UInt8]],
    _ random: inout SeededGenerator
  ) -> [UInt8] {
    var bytes = Array(input.dropFirst())
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      guard !bytes.isEmpty else { break }
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
        bytes.insert(contentsOf: other.dropFirst().prefix(64), at: start)
      default: bytes.swapAt(start, bytes.count - 1)
      }
    }
    return input.prefix(1) + bytes
  }

  @Test("What is wrong with a kept input is the client's mistake")
  func kept() async throws {
    let inputs = try FuzzTarget.corpus()
    #expect(
      Set(inputs.map { $0[0] % UInt8(FuzzTarget.Endpoint.allCases.count) }).count
        == FuzzTarget.Endpoint.allCases.count
    )
    let endpoints = FuzzTarget()
    for input in inputs {
      let complaint = await endpoints.take(input)
      #expect(complaint == nil)
    }
    await endpoints.stop()
  }

  @Test("What is wrong with a damaged input is the client's mistake")
  func damaged() async throws {
    var random = SeededGenerator.forTest()
    let inputs = try FuzzTarget.corpus()
    let endpoints = FuzzTarget()
    for _ in RandomRounds() {
      let input = try #require(inputs.randomElement(using: &random))
      let damaged = Self.damage(input, inputs, &random)
      if let complaint = await endpoints.take(damaged) {
        Issue.record("\(complaint), input \(Data(damaged).base64EncodedString())")
        break
      }
    }
    await endpoints.stop()
  }
}
