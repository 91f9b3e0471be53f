/// Creates the keys of Firebase's `push`: unique, and in the order of their creation.
///
/// A key has 8 characters of the time in milliseconds and 12 random ones. Within a millisecond the
/// random part counts up.
package struct PushIDGenerator: Sendable {
  private static let alphabet = Array(
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8
  )

  private var lastMilliseconds: Int64 = -1
  private var random = [UInt8](repeating: 0, count: 12)

  package init() {}

  package mutating func next(
    atMilliseconds milliseconds: Int64,
    using generator: inout some RandomNumberGenerator
  ) -> String {
    if milliseconds == lastMilliseconds, let index = random.lastIndex(where: { $0 < 63 }) {
      random[index] += 1
      for later in random.indices[(index + 1)...] { random[later] = 0 }
    } else {
      lastMilliseconds = milliseconds
      for index in random.indices { random[index] = UInt8.random(in: 0..<64, using: &generator) }
    }
    let time = (0..<8).reversed().map { UInt8(truncatingIfNeeded: milliseconds >> ($0 * 6)) & 63 }
    return String(decoding: (time + random).map { Self.alphabet[Int($0)] }, as: UTF8.self)
  }
}
