public import FirestoreClient

/// The facts that one version of a message states about a client.
///
/// A reading is stored at `clientProfiles/{trainerId}/clients/{clientId}/readings/{readingId}`. It
/// avoids paying twice for the same text, and lets a profile be composed again when a message is
/// edited or deleted. Only the server reads and writes it.
public struct ProfileReading: Codable, Sendable, Hashable {
  /// The key `{chatId}#{messageId}`, by which it is found even if the chat is deleted.
  public var id: String
  /// The uid of the trainer in whose profile the facts are.
  public var trainerId: String
  /// The uid of the client.
  public var clientId: String
  /// The id of the chat that holds the message.
  public var chatId: String
  /// The id of the message.
  public var messageId: String
  /// The hash of the version that was read.
  ///
  /// Each version of the message has its own hash. It is empty if no current version was read.
  public var version: String
  /// The facts found, as the message stated them; empty if there are none.
  public var facts: [ProfileItem]
  /// The message's facts that the trainer removed; nil if there are none.
  ///
  /// They include facts of earlier versions.
  public var removedFacts: [ProfileItem]?
  /// The time of the message, set only if it has facts.
  ///
  /// Readings without facts are therefore left out of queries ordered by this field.
  public var factsAt: Timestamp?
  /// The reason that the model could not read this version; nil if it could.
  public var problem: String?
  /// The name of the model that could not read this version.
  ///
  /// Another model may try again.
  public var model: String?
  /// The version that a worker is reading now; nil if there is none.
  public var claimedVersion: String?
  /// The time until which no other worker reads this version.
  public var claimedUntil: Timestamp?

  /// Creates a reading, by default without facts.
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

  /// The name of the collection of readings below a profile.
  public static let collection = "readings"
}
