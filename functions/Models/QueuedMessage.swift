public import FirestoreClient

/// A message that its sender's device has not delivered yet.
public struct QueuedMessage: Codable, Sendable, Hashable, Identifiable {
  /// The id that the message has now and after its delivery.
  public var id: String
  /// The id of the chat.
  public var chatId: String
  /// The uid of the sender.
  public var senderID: String
  /// The text; empty for an image without text.
  public var text: String
  /// The attached image; nil for none.
  public var media: MessageMedia?
  /// The time at which the message was written, by the device's clock.
  public var queuedAt: Timestamp
  /// The reason that the server refused the message; nil while it waits.
  public var failure: String?

  /// Creates a message that waits for its delivery.
  public init(
    id: String,
    chatId: String,
    senderID: String,
    text: String,
    media: MessageMedia? = nil,
    queuedAt: Timestamp
  ) {
    self.id = id
    self.chatId = chatId
    self.senderID = senderID
    self.text = text
    self.media = media
    self.queuedAt = queuedAt
  }
}
