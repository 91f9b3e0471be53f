import COpenSSL

/// Message authentication codes by HMAC with SHA-256 (RFC 2104).
package enum HMACSHA256 {
  /// Returns the 32 bytes of a message's code.
  package static func code(for message: [UInt8], key: [UInt8]) -> [UInt8] {
    defer { ERR_clear_error() }
    var code = [UInt8](repeating: 0, count: Int(EVP_MD_get_size(SHA256.function)))
    guard
      HMAC(SHA256.function, key, Int32(key.count), message, message.count, &code, nil) != nil
    else { fatalError("OpenSSL cannot authenticate \(message.count) bytes") }
    return code
  }

  /// Returns true if a code is the message's, in a time that does not depend on where they differ.
  package static func isValid(_ code: [UInt8], for message: [UInt8], key: [UInt8]) -> Bool {
    ConstantTime.isEqual(code, self.code(for: message, key: key))
  }
}
