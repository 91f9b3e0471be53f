import Events

/// Who caused an event, as Eventarc's auth context tells it.
///
/// Firestore names end users `unknown`, with the id of their user where there is one.
public struct EventAuth: Sendable, Hashable {
  /// What kind of caller it was.
  public var type: Kind
  /// The e-mail address of a service account, or a user's id; nil where nothing tells it.
  public var id: String?

  /// Who caused an event, as a test makes it.
  public init(_ type: Kind, id: String? = nil) {
    self.type = type
    self.id = id
  }

  /// The kinds of callers.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A service account, such as the one of a server or another function.
    case serviceAccount = "service_account"
    /// Somebody with an API key and nothing else.
    case apiKey = "api_key"
    /// Google itself, as for a deletion by a time-to-live policy.
    case system
    /// Somebody without any credential.
    case unauthenticated
    /// Anybody else, such as a signed-in user.
    case unknown
  }

  init(_ event: CloudEvent) {
    self.init(
      event.extensions["authtype"].flatMap(Kind.init) ?? .unknown,
      id: event.extensions["authid"].flatMap { $0.isEmpty ? nil : $0 }
    )
  }
}

/// A document event that also tells who caused it; all that `DocumentEvent` has can be read from it.
@dynamicMemberLookup
public struct DocumentAuthEvent<Payload: Sendable>: Sendable {
  /// What happened to the document.
  public var event: DocumentEvent<Payload>
  /// Who did it.
  public var auth: EventAuth

  /// An event as a test makes one.
  public init(event: DocumentEvent<Payload>, auth: EventAuth) {
    self.event = event
    self.auth = auth
  }

  /// What the event without its cause has: `id`, `path`, `params`, `data`, `logger` and so on.
  public subscript<Member>(
    dynamicMember member: KeyPath<DocumentEvent<Payload>, Member>
  ) -> Member {
    event[keyPath: member]
  }
}
