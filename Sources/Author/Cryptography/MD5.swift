/// The hash function MD5 (RFC 1321), for formats that prescribe it.
///
/// It protects nothing: anyone can make two texts with the same hash. It is also there on systems
/// in FIPS mode.
package enum MD5 {
  // `nonisolated(unsafe)`: it never changes.
  nonisolated(unsafe) private static let function = OpenSSL.hashFunction(
    "MD5",
    in: OpenSSL.independentContext
  )

  /// Returns the 16 bytes of the hash.
  package static func hash(data: [UInt8]) -> [UInt8] {
    OpenSSL.digest(of: data, by: function)
  }
}
