import Cryptography
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
    let expected = prefix + (try digest(password, salt: salt))
    return ConstantTime.isEqual(Array(hash.utf8), Array(expected.utf8))
  }

  /// A hash with the salt that it was computed with.
  package struct Hashed: Sendable, Hashable {
    package var hash: String
    package var salt: String
  }

  private static func digest(_ password: String, salt: String) throws -> String {
    let scrypt = Scrypt(rounds: 1024, blockSize: 8, parallelism: 1)
    let key = try scrypt.key(for: Array(password.utf8), salt: Array(salt.utf8), byteCount: 32)
    return Data(key).base64EncodedString()
  }

  private static let prefix = "scrypt:1024:8:1:"
  private static let saltLength = 20
}
