/// An app that has proved itself to App Check.
package struct AppIdentity: Sendable, Hashable {
  package var appID: String
  /// All claims of the token, as the JSON text of its payload.
  package var claimsJSON: String

  /// An app as a token describes it.
  package init(appID: String, claimsJSON: String) {
    self.appID = appID
    self.claimsJSON = claimsJSON
  }
}
