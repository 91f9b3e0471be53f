import Events

/// The caller that caused an event, according to Eventarc's auth context.
///
/// For end users, Firestore reports the type `unknown`, with the user's id if there is one.
public struct EventAuth: Sendable, Hashable {
  /// The kind of caller.
  public var type: Kind
  /// The email address of a service account, or the id of a user; nil if unknown.
  public var id: String?

  /// Creates a caller for a test.
  public init(_ type: Kind, id: String? = nil) {
    self.type = type
    self.id = id
  }

  /// The kinds of callers that Eventarc distinguishes.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A service account, such as the account of a server or of another function.
    case serviceAccount = "service_account"
    /// A caller with an API key and no other credential.
    case apiKey = "api_key"
    /// Google itself, for example when a time-to-live policy deletes a document.
    case system
    /// A caller without any credential.
    case unauthenticated
    /// Any other caller, such as a signed-in user.
    case unknown
  }

  init(_ event: CloudEvent) {
    self.init(
      event.extensions["authtype"].flatMap(Kind.init) ?? .unknown,
      id: event.extensions["authid"].flatMap { $0.isEmpty ? nil : $0 }
    )
  }
}
