/// The hash function SHA-1 (RFC 3174), for formats that prescribe it.
///
/// It protects nothing: two texts with the same hash can be made.
package enum SHA1 {
  // `nonisolated(unsafe)`: it never changes.
  nonisolated(unsafe) private static let function = OpenSSL.hashFunction(
    "SHA1",
    in: OpenSSL.independentContext
  )

  /// Returns the 20 bytes of the hash.
  package static func hash(data: [UInt8]) -> [UInt8] {
    OpenSSL.digest(of: data, by: function)
  }
}
