import AuthAccounts
import HTTPSupport
import HTTPTypes

/// The body of a request for new tokens: a form, or JSON with the names of either style.
struct RefreshRequest {
  var grantType: String?
  var refreshToken: String?

  init(_ call: AuthCall) throws(AuthError) {
    if call.request.headers[.contentType]?.lowercased().hasPrefix("application/json") == true {
      let fields: Fields = try call.decoded()
      grantType = fields.grantType ?? fields.grant_type
      refreshToken = fields.refreshToken ?? fields.refresh_token
    } else {
      let form = QueryParameters(call.text)
      grantType = form["grant_type"] ?? form["grantType"]
      refreshToken = form["refresh_token"] ?? form["refreshToken"]
    }
    if grantType?.isEmpty ?? false { grantType = nil }
    if refreshToken?.isEmpty ?? false { refreshToken = nil }
  }

  private struct Fields: Decodable {
    var grantType: String?
    var refreshToken: String?
    var grant_type: String?
    var refresh_token: String?
  }
}
