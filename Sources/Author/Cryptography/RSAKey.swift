import COpenSSL

/// An RSA key of OpenSSL, which is freed with its last owner.
///
/// `@unchecked Sendable`: the key never changes after its creation. OpenSSL counts its owners
/// atomically and locks what it caches in a key, so any number of threads may use it at once.
final class RSAKey: @unchecked Sendable {
  let pointer: OpaquePointer

  /// Takes ownership of a key; throws if it is not an RSA key of 2048 to 16 384 bits.
  init(owning pointer: OpaquePointer) throws(CryptographyError) {
    // Set first, so that a key that is refused is freed too.
    self.pointer = pointer
    guard EVP_PKEY_is_a(pointer, "RSA") == 1 else { throw CryptographyError("not an RSA key") }
    let bits = Int(EVP_PKEY_get_bits(pointer))
    guard Self.bitsRange.contains(bits) else {
      throw CryptographyError(
        "an RSA key of \(bits) bits; "
          + "\(Self.bitsRange.lowerBound) to \(Self.bitsRange.upperBound) are accepted"
      )
    }
  }

  deinit { EVP_PKEY_free(pointer) }

  /// NIST SP 800-131A forbids shorter keys; a longer one would keep a processor busy for long.
  static let bitsRange = 2048...16_384

  /// Runs a signature's operation with a fresh context; always RSASSA-PKCS1-v1_5 and SHA-256.
  ///
  /// Returns nil if the context cannot be made.
  func withSignatureContext<Result>(
    _ start: (OpaquePointer, UnsafeMutablePointer<OpaquePointer?>) -> Int32,
    then body: (OpaquePointer) -> Result
  ) -> Result? {
    defer { ERR_clear_error() }
    guard let context = EVP_MD_CTX_new() else { return nil }
    defer { EVP_MD_CTX_free(context) }
    // Owned by the context.
    var parameters: OpaquePointer?
    guard start(context, &parameters) == 1,
      EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PADDING) == 1
    else { return nil }
    return body(context)
  }
}
