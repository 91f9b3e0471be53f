/// Gives the tokens that calls to Google's services carry as `Authorization: Bearer …`.
package protocol AccessTokenSource: Sendable {
  /// A token that is valid now; throws a `StatusConvertible` when there is none to be had.
  func token() async throws -> String

  /// Says that a service answered 401 to a token, so that the next token is a new one.
  func reject(_ token: String) async

  /// The e-mail address of the service account that the tokens belong to.
  func serviceAccountEmail() async throws -> String
}
