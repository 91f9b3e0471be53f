/// The rule for who may call a callable.
///
/// Other callers are refused before their data is decoded.
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
  /// The check of a caller, which throws the error that refuses the caller.
  let check: @Sendable (CallableAuth) async throws -> Void

  /// Creates a rule that allows the callers for which a closure does not throw.
  ///
  /// A `CallableError` that the closure throws reaches the client. Any other error is logged, and
  /// the client receives `INTERNAL`.
  public init(_ check: @escaping @Sendable (CallableAuth) async throws -> Void) {
    self.check = check
  }

  /// All callers, signed in or not.
  public static let anyone = CallableCallers { _ in }

  /// Signed-in users only.
  ///
  /// Other callers receive `unauthenticated`.
  ///
  /// The administrator of the emulator has no uid and is refused too.
  public static let users = CallableCallers { _ = try requireUser($0) }

  /// Returns a rule that allows users with a custom claim of this value.
  ///
  /// The administrator of the emulator may call too. Other users receive `permission-denied`, and
  /// callers who are not signed in receive `unauthenticated`. The administrator (`Bearer owner`)
  /// has no uid and exists only in the emulator.
  public static func claim(_ name: String, _ value: String) -> CallableCallers {
    claim(name, .string(value), "'\(value)'")
  }

  /// Returns a rule that allows users with a custom claim equal to `value`.
  ///
  /// The administrator of the emulator may call too. Other users receive `permission-denied`, and
  /// callers who are not signed in receive `unauthenticated`.
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

  /// Returns the signed-in user; throws `unauthenticated` if the caller is not a user.
  static func requireUser(_ auth: CallableAuth) throws(CallableError) -> AuthenticatedUser {
    guard case .user(let user) = auth else {
      throw CallableError(.unauthenticated, "Sign in first: this function needs a user.")
    }
    return user
  }
}
