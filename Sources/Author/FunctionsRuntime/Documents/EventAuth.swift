import Events

/// Who caused an event, according to Eventarc's auth context.
///
/// Firestore calls end users `unknown`, with their user's id if there is one.
public struct EventAuth: Sendable, Hashable {
  /// The kind of caller.
  public var type: Kind
  /// The e-mail address of a service account, or a user's id; nil when unknown.
  public var id: String?

  /// Who caused an event, as a test makes it.
  public init(_ type: Kind, id: String? = nil) {
    self.type = type
    self.id = id
  }

  /// The kinds of callers.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A service account, such as that of a server or another function.
    case serviceAccount = "service_account"
    /// A caller with an API key and nothing else.
    case apiKey = "api_key"
    /// Google itself, as for a deletion by a time-to-live policy.
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
