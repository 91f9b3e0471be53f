public import PsstModels

/// The fields of a sign-up as a person fills them in, checked without the server.
///
/// ```swift
/// if let error = form.errors[.email] { Text(error.localizedDescription) }
/// ```
public struct SignUpForm: Sendable, Hashable {
  /// The email address as typed.
  public var email: String
  /// The password.
  public var password: String
  /// The name as typed.
  public var displayName: String
  /// The chosen role; nil before the choice.
  public var role: UserRole?

  /// The fields of the form, in the order in which a sign-up reports their errors.
  public enum Field: Sendable, Hashable, CaseIterable {
    case displayName, role, email, password
  }

  /// Creates a form, by default an empty one.
  public init(
    email: String = "",
    password: String = "",
    displayName: String = "",
    role: UserRole? = nil
  ) {
    self.email = email
    self.password = password
    self.displayName = displayName
    self.role = role
  }

  /// The errors of all fields that a sign-up would refuse.
  ///
  /// Without any the form can be sent; the server may still refuse an address that is in use.
  public var errors: [Field: AuthenticationError] {
    var errors: [Field: AuthenticationError] = [:]
    do {
      _ = try AuthenticationService.checkedName(displayName)
    } catch {
      errors[.displayName] = error as? AuthenticationError
    }
    if role == nil { errors[.role] = .invalidRole }
    if EmailAddress(email) == nil { errors[.email] = .invalidEmail }
    if password.utf16.count < Self.passwordLengthMin { errors[.password] = .weakPassword }
    return errors
  }

  /// Returns the values to send; throws the error of the first field that has one.
  func values() throws -> (name: String, role: UserRole, email: String) {
    let errors = errors
    for field in Field.allCases {
      if let error = errors[field] { throw error }
    }
    guard let role else { throw AuthenticationError.invalidRole }
    guard let address = EmailAddress(email) else { throw AuthenticationError.invalidEmail }
    return (try AuthenticationService.checkedName(displayName), role, address.typed)
  }

  /// The minimum of Firebase Authentication.
  private static let passwordLengthMin = 6
}
