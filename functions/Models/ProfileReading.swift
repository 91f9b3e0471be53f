public import FirestoreClient

/// What one version of a message said about a client,
/// `clientProfiles/{trainerId}/clients/{clientId}/readings/{chatId}#{messageId}`.
///
/// It keeps the same text from being paid for twice, and lets a profile be put together again when
/// a message is edited or deleted. Only the server reads and writes it.
public struct ProfileReading: Codable, Sendable, Hashable {
  /// The reading's own id, by which it is found whatever has become of the message's chat.
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
  public var version: String
  /// The facts found, as the message said them; none when it said nothing.
  public var facts: [ProfileItem]
  /// The time of the message, only where it has facts: readings without any are in no order by it.
  public var factsAt: Timestamp?

  /// A reading.
  public init(
    id: String,
    trainerId: String,
    clientId: String,
    chatId: String,
    messageId: String,
    version: String,
    facts: [ProfileItem],
    factsAt: Timestamp?
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
