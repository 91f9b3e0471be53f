public import FirestoreClient

/// One message, `chats/{chatId}/messages/{messageId}`.
public struct Message: Codable, Sendable, Hashable {
  /// What was written; empty for an image without words.
  public var text: String
  /// Who wrote it.
  public var senderID: String
  /// When the message was written.
  public var timestamp: Timestamp
  /// The uids of those who have read it.
  public var readBy: [String]
  /// The kind of attachment, such as `image`; nil for none.
  public var mediaType: String?

  /// A message.
  public init(
    text: String,
    senderID: String,
    timestamp: Timestamp,
    readBy: [String] = [],
    mediaType: String? = nil
  ) {
    self.text = text
    self.senderID = senderID
    self.timestamp = timestamp
    self.readBy = readBy
    self.mediaType = mediaType
  }

  /// Reads a stored message; images have no text and new messages no readers.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    text = try container.decodeIfPresent(String.self, forKey: .text) ?? ""
    senderID = try container.decode(String.self, forKey: .senderID)
    timestamp = try container.decode(Timestamp.self, forKey: .timestamp)
    readBy = try container.decodeIfPresent([String].self, forKey: .readBy) ?? []
    mediaType = try container.decodeIfPresent(String.self, forKey: .mediaType)
  }

  /// What a list of chats or a notification shows of the message: its text, or `Photo`.
  ///
  /// The beginning, if the text is long: each chat keeps a copy.
  public var preview: String {
    let isBlank = text.allSatisfy(\.isWhitespace)
    return isBlank && mediaType != nil ? "Photo" : text.prefix(bytesMax: Self.previewBytesMax)
  }

  private static let previewBytesMax = 2000

  /// Where the messages of a chat are stored, below it.
  public static let collection = "messages"
}
