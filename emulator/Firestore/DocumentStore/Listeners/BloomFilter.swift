import Cryptography
import DocumentModel

/// A compact set of resource names that lets a client find documents it should no longer have.
///
/// Bits and hashes are computed as in the client libraries, from the two 64-bit halves of a name's
/// MD5 hash. The bits of a name are nearly an arithmetic progression, so a few names have few
/// distinct bits: about one name in 10 000 is a false positive of a filter of 100 names, one in
/// 100 000 of a filter of 1000. After a false positive the client runs its query again.
package struct BloomFilter: Sendable, Hashable {
  /// The bits of the filter.
  ///
  /// Bit `n` is bit `n % 8` of byte `n / 8`, least significant first.
  package private(set) var bitmap: [UInt8]
  /// The number of unused bits in the last byte.
  package let padding: Int
  package let hashCount: Int

  private let bitCount: UInt64

  /// Creates an empty set for `count` names.
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

  /// With independent hashes, −ln(10⁻⁶) / ln²2 bits make one false positive in a million.
  private static let bitsPerName = 28.755
  private static let hashes = 20
  /// The minimum number of bits.
  ///
  /// With fewer bits, the hashes of a name, which are multiples of one number, coincide.
  private static let bitsMin = 509

  /// Adds a document's full resource name.
  mutating func insert(_ name: DocumentName) {
    guard bitCount > 0 else { return }
    let digest = MD5.hash(data: Array(name.description.utf8))
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
