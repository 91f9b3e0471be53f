import RuntimeSupport
import Synchronization

/// Users by the tokens that a process was shown, for decoding one costs more than most requests.
///
/// Only for tokens that mean the same at all times, as those that the emulator believes do.
final class KnownUsers: Sendable {
  /// Those of a test run fit; then the next one begins anew.
  private static let countMax = 1000
  /// Longer tokens are decoded each time, so that all together stay below a few megabytes.
  private static let bytesMax = 4096

  /// By bytes, because texts that only look alike are equal as strings.
  private let users = Mutex<[[UInt8]: UserIdentity]>([:])

  /// The user of a token; `decode` finds out whose it is when it is new, and throws when it is none.
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
