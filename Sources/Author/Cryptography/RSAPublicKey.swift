import COpenSSL

/// A public RSA key, which verifies signatures by RS256: RSASSA-PKCS1-v1_5 with SHA-256.
///
/// The algorithm belongs to the key: a signature by any other is not valid, whatever its author
/// claims. Any number of threads may use a key at once.
package struct RSAPublicKey: Sendable {
  private let key: RSAKey

  /// Creates a key from its numbers, most significant byte first, as a JSON Web Key has them.
  ///
  /// Throws unless the modulus is odd and of 2048 to 16 384 bits, and the exponent is odd and of 17
  /// to 64 bits.
  package init(modulus: [UInt8], exponent: [UInt8]) throws(CryptographyError) {
    guard modulus.count <= RSAKey.bitsRange.upperBound / 8 + 1, Self.isOdd(modulus) else {
      throw CryptographyError("not the modulus of an RSA key")
    }
    let significant = exponent.drop { $0 == 0 }
    // FIPS 186-5 forbids smaller exponents, OpenSSL larger ones with long keys.
    guard (3...8).contains(significant.count), Self.isOdd(exponent) else {
      throw CryptographyError("an RSA key with an exponent that is not accepted")
    }
    OpenSSL.start()
    defer { ERR_clear_error() }
    guard let pointer = Self.make(modulus, exponent) else {
      throw CryptographyError("not an RSA key")
    }
    key = try RSAKey(owning: pointer)
  }

  private static func isOdd(_ number: [UInt8]) -> Bool { number.last.map { $0 & 1 == 1 } ?? false }

  private static func make(_ modulus: [UInt8], _ exponent: [UInt8]) -> OpaquePointer? {
    let n = BN_bin2bn(modulus, Int32(modulus.count), nil)
    defer { BN_free(n) }
    let e = BN_bin2bn(exponent, Int32(exponent.count), nil)
    defer { BN_free(e) }
    guard let n, let e, let builder = OSSL_PARAM_BLD_new() else { return nil }
    defer { OSSL_PARAM_BLD_free(builder) }
    guard hearth_push_rsa_numbers(builder, n, e) == 1,
      let parameters = OSSL_PARAM_BLD_to_param(builder)
    else { return nil }
    defer { OSSL_PARAM_free(parameters) }
    guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nil) else { return nil }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_fromdata_init(context) == 1,
      EVP_PKEY_fromdata(context, &key, hearth_public_key_selection(), parameters) == 1
    else { return nil }
    return key
  }

  /// Returns true if a signature is that of a message by this key's private half.
  ///
  /// If OpenSSL cannot decide, the signature is not valid.
  package func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    let isValid = key.withSignatureContext { context, parameters in
      EVP_DigestVerifyInit(context, parameters, SHA256.function, nil, key.pointer)
    } then: { context in
      EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
    return isValid ?? false
  }
}
