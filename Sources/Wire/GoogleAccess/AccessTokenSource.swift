/// A source of the tokens that calls to Google's services carry as `Authorization: Bearer …`.
package protocol AccessTokenSource: Sendable {
  /// Returns a token that is valid now; throws a `StatusConvertible` if none is available.
  func token() async throws -> String

  /// Reports that a service responded to a token with 401, so that the next token is a new one.
  func reject(_ token: String) async

  /// Returns the e-mail address of the service account that the tokens belong to.
  func serviceAccountEmail() async throws -> String
}
