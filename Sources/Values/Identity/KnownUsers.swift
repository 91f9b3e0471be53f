import StatusCodes
import Synchronization

/// A cache of users by token, because decoding a token costs more than most requests.
///
/// It is only for tokens whose meaning never changes, such as those that the emulator trusts.
final class KnownUsers: Sendable {
  /// The maximum number of users kept, enough for one test run.
  ///
  /// A full cache is emptied.
  private static let countMax = 1000
  /// The length up to which tokens are cached, so that the cache stays below a few megabytes.
  ///
  /// Longer tokens are decoded each time.
  private static let bytesMax = 4096

  /// The users by the bytes of their tokens; as strings, texts that only look alike would be equal.
  private let users = Mutex<[[UInt8]: UserIdentity]>([:])

  /// Returns the user of a token; calls `decode` for a new token and rethrows its error.
  func user(
    of token: String,
    decode: () throws(StatusError) -> UserIdentity
  ) throws(StatusError) -> UserIdentity {
    let key = Array(token.utf8)
    if let user = users.withLock({ $0[key] }) { return user }
    let user = try decode()
    guard key.count <= Self.bytesMax else { return user }
    users.withLock { users in
      if users.count >= Self.countMax { users.removeAll() }
      users[key] = user
    }
    return user
  }
}
