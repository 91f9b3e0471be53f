import COpenSSL

/// The parts of OpenSSL that all uses of it share.
enum OpenSSL {
  /// Starts the library at the first call; called before every other use.
  ///
  /// The library does not release its memory when the process exits, because other threads may
  /// still compute then. If the process has used the library before, that is already decided.
  static func start() {
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
  }

  /// A library context with the default provider, whatever the system's configuration says.
  ///
  /// It is for MD5 and scrypt, which a system in FIPS mode does not have. Firebase's formats
  /// prescribe them, and no secret of a production system depends on them. Everything else uses the
  /// system's context and so its policy.
  ///
  /// `nonisolated(unsafe)`: it is set once; OpenSSL guards what is inside.
  nonisolated(unsafe) static let independentContext: OpaquePointer = {
    start()
    defer { ERR_clear_error() }
    guard let context = OSSL_LIB_CTX_new(), OSSL_PROVIDER_load(context, "default") != nil else {
      fatalError("OpenSSL has no default provider; reinstall it (libssl3, or openssl@3)")
    }
    return context
  }()

  /// Returns the implementation of a hash function, for the lifetime of the process.
  ///
  /// Finding it takes longer than hashing a short text, so callers keep it.
  static func hashFunction(_ name: String, in context: OpaquePointer?) -> OpaquePointer {
    start()
    defer { ERR_clear_error() }
    guard let function = EVP_MD_fetch(context, name, nil) else {
      fatalError("OpenSSL offers no \(name); check its configuration (openssl.cnf) and its build")
    }
    return function
  }

  /// Returns the digest of bytes.
  static func digest(of bytes: [UInt8], by function: OpaquePointer) -> [UInt8] {
    defer { ERR_clear_error() }
    var digest = [UInt8](repeating: 0, count: Int(EVP_MD_get_size(function)))
    // Without memory there is no digest, and no program to give it to.
    guard EVP_Digest(bytes, bytes.count, &digest, nil, function, nil) == 1 else {
      fatalError("OpenSSL cannot hash \(bytes.count) bytes")
    }
    return digest
  }
}
