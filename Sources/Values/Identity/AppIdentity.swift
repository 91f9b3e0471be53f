/// An app, identified by its App Check token.
package struct AppIdentity: Sendable, Hashable {
  package var appID: String
  /// All claims of the token, as the JSON text of its payload.
  package var claimsJSON: String

  package init(appID: String, claimsJSON: String) {
    self.appID = appID
    self.claimsJSON = claimsJSON
  }
}
