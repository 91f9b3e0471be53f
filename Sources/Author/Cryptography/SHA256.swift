import COpenSSL

/// The hash function SHA-256 (FIPS 180-4).
///
/// It is called like the type of the same name in Apple's CryptoKit, so that one source works on
/// every platform:
///
/// ```swift
/// #if canImport(CryptoKit)
///   import CryptoKit
/// #else
///   import Cryptography
/// #endif
/// ```
public enum SHA256 {
  // `nonisolated(unsafe)`: it never changes.
  nonisolated(unsafe) static let function = OpenSSL.hashFunction("SHA256", in: nil)

  /// Returns the 32 bytes of the hash.
  public static func hash(data: [UInt8]) -> [UInt8] {
    OpenSSL.digest(of: data, by: function)
  }
}
