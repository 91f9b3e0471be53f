public import FirestoreClient

/// What one version of a message said about a client,
/// `clientProfiles/{trainerId}/clients/{clientId}/readings/{readingId}`.
///
/// It keeps the same text from being paid for twice, and lets a profile be put together again when
/// a message is edited or deleted. Only the server reads and writes it.
public struct ProfileReading: Codable, Sendable, Hashable {
  /// `{chatId}#{messageId}`, by which it is found whatever has become of the message's chat.
  public var id: String
  /// The trainer whose profile of the client has the facts.
  public var trainerId: String
  /// The client.
  public var clientId: String
  /// The chat of the message.
  public var chatId: String
  /// The message.
  public var messageId: String
  /// What was read, as a hash; another version of the message has another one.
  ///
  /// Empty while no version that is there now was read.
  public var version: String
  /// The facts found, as the message said them; none when it said nothing.
  public var facts: [ProfileItem]
  /// Those of its facts that the trainer removed, also as earlier versions said them; nil for none.
  public var removedFacts: [ProfileItem]?
  /// The time of the message, only where it has facts: readings without any are in no order by it.
  public var factsAt: Timestamp?
  /// Why the model could not read this version; nil when it could.
  public var problem: String?
  /// The model that could not read it; another one may.
  public var model: String?
  /// The version that somebody is reading now; nil when nobody is.
  public var claimedVersion: String?
  /// Until when nobody else reads it.
  public var claimedUntil: Timestamp?

  /// A reading.
  public init(
    id: String,
    trainerId: String,
    clientId: String,
    chatId: String,
    messageId: String,
    version: String,
    facts: [ProfileItem] = [],
    factsAt: Timestamp? = nil
  ) {
    self.id = id
    self.trainerId = trainerId
    self.clientId = clientId
    self.chatId = chatId
    self.messageId = messageId
    self.version = version
    self.facts = facts
    self.factsAt = factsAt
  }

  /// Where readings are stored, below a profile.
  public static let collection = "readings"
}
