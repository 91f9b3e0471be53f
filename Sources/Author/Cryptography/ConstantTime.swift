import COpenSSL

/// Comparisons that do not reveal secrets by the time that they take.
package enum ConstantTime {
  /// Returns true if both have the same bytes; only their lengths show in the time.
  package static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
  }
}
