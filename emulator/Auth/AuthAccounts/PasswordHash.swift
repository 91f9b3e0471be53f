import CryptoExtras
import Foundation
import Identifiers

/// The hash of a password, computed with scrypt.
///
/// scrypt is the function with which Firebase hashes passwords in production. The parameters are
/// much cheaper than production's, because tests sign in thousands of users. A hash of Firebase's
/// emulator, `fakeHash:salt=…:password=…`, is accepted too, so that its exports can be imported.
package enum PasswordHash {
  /// Returns the hash of a password with a salt, and the salt.
  package static func make(_ password: String, salt: String? = nil) throws -> Hashed {
    let salt = salt ?? RandomID.make(length: saltLength)
    return Hashed(hash: prefix + (try digest(password, salt: salt)), salt: salt)
  }

  /// Returns true if a password has the hash and the salt of an account.
  package static func matches(_ password: String, _ account: UserAccount) throws -> Bool {
    guard let hash = account.passwordHash, let salt = account.salt else { return false }
    guard hash.hasPrefix(prefix) else {
      return hash == "fakeHash:salt=\(salt):password=\(password)"
    }
    return isEqual(hash, prefix + (try digest(password, salt: salt)))
  }

  /// A hash with the salt that it was computed with.
  package struct Hashed: Sendable, Hashable {
    package var hash: String
    package var salt: String
  }

  private static func digest(_ password: String, salt: String) throws -> String {
    let key = try KDF.Scrypt.deriveKey(
      from: Data(password.utf8),
      salt: Data(salt.utf8),
      outputByteCount: 32,
      rounds: 1024,
      blockSize: 8,
      parallelism: 1
    )
    return key.withUnsafeBytes { Data($0).base64EncodedString() }
  }

  /// Compares texts in a time that does not depend on where they differ.
  private static func isEqual(_ left: String, _ right: String) -> Bool {
    let left = Array(left.utf8)
    let right = Array(right.utf8)
    return left.count == right.count && zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private static let prefix = "scrypt:1024:8:1:"
  private static let saltLength = 20
}
