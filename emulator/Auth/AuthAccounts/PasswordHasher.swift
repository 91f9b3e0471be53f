import Dispatch

/// A thread of its own for hashing passwords, which takes milliseconds of a processor.
///
/// Hashing on the shared threads would stop all other requests of the suite while many users sign
/// in. One thread leaves the other processors to them. Requests are served first come, first
/// served.
package final class PasswordHasher: Sendable {
  private let queue = DispatchQueue(label: "hearth.auth.passwords", qos: .utility)

  package init() {}

  /// Returns the hash of a password with a salt, by default a random one.
  package func hash(
    _ password: String,
    salt: String? = nil
  ) async throws -> PasswordHash.Hashed {
    try await run { try PasswordHash.make(password, salt: salt) }
  }

  /// Returns true if a password has the hash and the salt of an account.
  package func matches(_ password: String, _ account: UserAccount) async throws -> Bool {
    try await run { try PasswordHash.matches(password, account) }
  }

  private func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try Task.checkCancellation()
    return try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}
