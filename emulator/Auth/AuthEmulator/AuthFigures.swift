import Synchronization

/// The numbers of requests to an Auth service, by method and outcome.
package final class AuthFigures: Sendable {
  /// A method with the outcome of its requests.
  package struct Key: Sendable, Hashable {
    package var method: String
    package var isRefused: Bool
  }

  /// The most methods that are counted; requests for others are counted as `other`.
  private static let methodsMax = 50

  private let counts = Mutex<[Key: Int]>([:])

  /// The numbers of requests since the start.
  package var requests: [Key: Int] { counts.withLock { $0 } }

  func count(_ method: String, isRefused: Bool) {
    counts.withLock { counts in
      let key = Key(method: method, isRefused: isRefused)
      guard counts[key] != nil || counts.count < Self.methodsMax else {
        return counts[Key(method: "other", isRefused: isRefused), default: 0] += 1
      }
      counts[key, default: 0] += 1
    }
  }
}
