import COpenSSL

/// The function scrypt (RFC 7914), which derives a key from a password at a chosen cost.
package struct Scrypt: Sendable {
  /// The cost of processor and memory, a power of two.
  package var rounds: UInt64
  package var blockSize: UInt64
  package var parallelism: UInt64

  package init(rounds: UInt64, blockSize: UInt64, parallelism: UInt64) {
    self.rounds = rounds
    self.blockSize = blockSize
    self.parallelism = parallelism
  }

  /// The memory that one derivation may take.
  private static let memoryBytesMax: UInt64 = 64 << 20

  /// Returns a key of a password.
  ///
  /// Throws for parameters that scrypt does not allow or that need more than 64 MiB.
  package func key(
    for password: [UInt8],
    salt: [UInt8],
    byteCount: Int
  ) throws(CryptographyError) -> [UInt8] {
    let context = OpenSSL.independentContext
    defer { ERR_clear_error() }
    var key = [UInt8](repeating: 0, count: byteCount)
    let isDerived = password.withUnsafeBytes { password in
      EVP_PBE_scrypt_ex(
        password.baseAddress,
        password.count,
        salt,
        salt.count,
        rounds,
        blockSize,
        parallelism,
        Self.memoryBytesMax,
        &key,
        byteCount,
        context,
        nil
      )
    }
    guard isDerived == 1 else {
      throw CryptographyError(
        "scrypt cannot use \(rounds) rounds, block size \(blockSize), parallelism \(parallelism)"
      )
    }
    return key
  }
}
