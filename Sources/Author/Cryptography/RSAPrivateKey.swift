import COpenSSL

/// A private RSA key, which signs by RS256: RSASSA-PKCS1-v1_5 with SHA-256.
///
/// Any number of threads may use a key at once.
package struct RSAPrivateKey: Sendable {
  private let key: RSAKey

  /// The longest accepted text; a key of 16 384 bits has 13 kB.
  private static let pemBytesMax = 64 * 1024

  /// Reads a key from PEM, in PKCS #8 or PKCS #1.
  ///
  /// Throws for an encrypted key, for one that is not of RSA, and for one of less than 2048 bits.
  package init(pem: String) throws(CryptographyError) {
    OpenSSL.start()
    defer { ERR_clear_error() }
    let text = Array(pem.utf8)
    guard text.count <= Self.pemBytesMax, let pointer = text.withUnsafeBytes(Self.read) else {
      throw CryptographyError("not a private key in PEM")
    }
    key = try RSAKey(owning: pointer)
  }

  private static func read(_ text: UnsafeRawBufferPointer) -> OpaquePointer? {
    guard let input = BIO_new_mem_buf(text.baseAddress, Int32(text.count)) else { return nil }
    defer { BIO_free(input) }
    // Without a function that refuses, OpenSSL would ask for a password at the terminal.
    return PEM_read_bio_PrivateKey(input, nil, { _, _, _, _ in -1 }, nil)
  }

  /// Returns the signature of a message, as long as the key's modulus.
  package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    var signature = [UInt8](repeating: 0, count: Int(EVP_PKEY_get_size(key.pointer)))
    var count = signature.count
    let isSigned = key.withSignatureContext { context, parameters in
      EVP_DigestSignInit(context, parameters, SHA256.function, nil, key.pointer)
    } then: { context in
      EVP_DigestSign(context, &signature, &count, message, message.count) == 1
    }
    guard isSigned == true, count == signature.count else {
      throw CryptographyError("the RSA key cannot sign")
    }
    return signature
  }
}
