/// Who may call a callable; other callers are refused before their data is decoded.
///
/// ```swift
/// .init("plan", callers: .users) { … }
/// .init("assign", callers: .claim("role", "trainer")) { … }
/// .init("audit", callers: .init { auth in
///   guard try await auditors.contains(auth.uid ?? "") else {
///     throw CallableError(.permissionDenied, "Only auditors may do this.")
///   }
/// }) { … }
/// ```
public struct CallableCallers: Sendable {
  /// Throws the error with which a caller is refused.
  let check: @Sendable (CallableAuth) async throws -> Void

  /// Callers that a closure does not refuse by throwing.
  ///
  /// A `CallableError` reaches the client; any other error is logged, and the client is told
  /// `INTERNAL`.
  public init(_ check: @escaping @Sendable (CallableAuth) async throws -> Void) {
    self.check = check
  }

  /// Anyone, signed in or not.
  public static let anyone = CallableCallers { _ in }

  /// Signed-in users; all others get `unauthenticated`.
  ///
  /// That includes the administrator, who has no uid.
  public static let users = CallableCallers { _ = try requireUser($0) }

  /// Users whose token has a custom claim of this value, and the administrator of the emulator.
  ///
  /// Other users get `permission-denied`; a caller who is not signed in gets `unauthenticated`. The
  /// administrator (`Bearer owner`) has no uid; outside the emulator there is none.
  public static func claim(_ name: String, _ value: String) -> CallableCallers {
    claim(name, .string(value), "'\(value)'")
  }

  /// Users whose token has a custom claim that is `true`, or equal to `value`.
  ///
  /// Otherwise like the form for text.
  public static func claim(_ name: String, _ value: Bool = true) -> CallableCallers {
    claim(name, .boolean(value), "\(value)")
  }

  private static func claim(
    _ name: String,
    _ value: FirestoreValue,
    _ text: String
  ) -> CallableCallers {
    CallableCallers { auth in
      guard try auth == .admin || requireUser(auth).claims[name] == value else {
        throw CallableError(
          .permissionDenied,
          "This function needs a user whose claim '\(name)' is \(text)."
        )
      }
    }
  }

  /// The signed-in user; throws `unauthenticated` when there is none.
  static func requireUser(_ auth: CallableAuth) throws(CallableError) -> AuthenticatedUser {
    guard case .user(let user) = auth else {
      throw CallableError(.unauthenticated, "Sign in first: this function needs a user.")
    }
    return user
  }
}
