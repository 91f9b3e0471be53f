import Crypto
import DocumentModel

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A compact set of resource names, by which a client finds what it should no longer have.
///
/// Bits and hashes are those that the clients' libraries compute: two numbers of a name's MD5.
package struct BloomFilter: Sendable, Hashable {
  /// Bit `n` is bit `n % 8` of byte `n / 8`, least significant first.
  package private(set) var bitmap: [UInt8]
  /// How many bits of the last byte do not count.
  package let padding: Int
  package let hashCount: Int

  private let bitCount: UInt64

  /// An empty set for `count` names, of which a name that was not added is found once in a million.
  init(count: Int) {
    guard count > 0 else {
      (bitmap, padding, hashCount, bitCount) = ([], 0, 0, 0)
      return
    }
    let bits = max(Int((Double(count) * Self.bitsPerName).rounded(.up)), Self.bitsMin)
    bitCount = UInt64(bits)
    bitmap = Array(repeating: 0, count: (bits + 7) / 8)
    padding = bitmap.count * 8 - bits
    hashCount = Self.hashes
  }

  /// One false find in a million takes −ln(10⁻⁶) / ln²2 bits.
  private static let bitsPerName = 28.755
  private static let hashes = 20
  /// With few bits the hashes of a name, which are multiples of one number, fall together.
  private static let bitsMin = 509

  /// Adds a document's full resource name.
  mutating func insert(_ name: DocumentName) {
    guard bitCount > 0 else { return }
    let digest = Array(Insecure.MD5.hash(data: Data(name.description.utf8)))
    func half(_ start: Int) -> UInt64 {
      (0..<8).reduce(0) { $0 | UInt64(digest[start + $1]) << ($1 * 8) }
    }
    let (first, second) = (half(0), half(8))
    for index in 0..<UInt64(hashCount) {
      let bit = (first &+ index &* second) % bitCount
      bitmap[Int(bit / 8)] |= 1 << UInt8(bit % 8)
    }
  }
}
