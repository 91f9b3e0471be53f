import LibC
import Synchronization

/// A generator of random ids in the form that Firestore clients use.
package enum RandomID {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8
  )

  /// The length of an automatic document id.
  package static let lengthOfDocumentID = 20

  /// Returns true if a byte is one of `[A-Za-z0-9]`.
  package static func isCharacter(_ byte: UInt8) -> Bool { alphabet.contains(byte) }

  /// Returns `length` random characters of `[A-Za-z0-9]`.
  package static func make(
    length: Int = lengthOfDocumentID,
    using generator: inout some RandomNumberGenerator
  ) -> String {
    var characters: [UInt8] = []
    characters.reserveCapacity(length)
    while characters.count < length {
      // Each number yields ten pieces of six bits, the size of an index.
      var bits = generator.next()
      for _ in 0..<10 where characters.count < length {
        let index = Int(bits & 0x3f)
        bits >>= 6
        // Indexes beyond the alphabet are dropped so that all characters are equally likely.
        if index < alphabet.count { characters.append(alphabet[index]) }
      }
    }
    return String(decoding: characters, as: UTF8.self)
  }

  /// Returns `length` random characters of `[A-Za-z0-9]` from the system's generator.
  package static func make(length: Int = lengthOfDocumentID) -> String {
    stock.withLock { make(length: length, using: &$0) }
  }

  private static let stock = Mutex(Stock())

  /// A buffer of the system's random numbers, fetched in bulk because each fetch is a system call.
  private struct Stock: RandomNumberGenerator {
    /// The count of 64-bit numbers in 256 bytes, the most that one `getentropy` call returns.
    private static let size = 32
    private var numbers: [UInt64] = []

    /// Fills a buffer with random bytes; returns false if the system has none.
    ///
    /// iOS lacks `getentropy`; `arc4random_buf` of Apple's systems never fails.
    private static func fill(_ start: UnsafeMutableRawPointer, bytes: Int) -> Bool {
      #if canImport(Darwin)
        arc4random_buf(start, bytes)
        return true
      #else
        return getentropy(start, bytes) == 0
      #endif
    }

    mutating func next() -> UInt64 {
      if let number = numbers.popLast() { return number }
      numbers = Array(unsafeUninitializedCapacity: Self.size) { buffer, count in
        let bytes = Self.size * MemoryLayout<UInt64>.size
        let isFilled = buffer.baseAddress.map { Self.fill($0, bytes: bytes) } ?? false
        count = isFilled ? Self.size : 0
      }
      if let number = numbers.popLast() { return number }
      var system = SystemRandomNumberGenerator()
      return system.next()
    }
  }
}
