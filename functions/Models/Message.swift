public import FirestoreClient

/// One message, `chats/{chatId}/messages/{messageId}`.
public struct Message: StoredDocument, Hashable {
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
  /// The fields and readers that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

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
  ///
  /// Throws when there is no sender or no time, and for a text that is not text.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    text = try fields.container.decodeIfPresent(String.self, forKey: .text) ?? ""
    senderID = try fields.container.decode(StoredUID.self, forKey: .senderID).text
    timestamp = try fields.container.decode(Timestamp.self, forKey: .timestamp)
    readBy = try fields.optionalElements(.readBy)
    mediaType = try fields.optional(.mediaType)
    unreadable = fields.unreadable
  }

  /// Whether another version says the same; who has read it does not count.
  public func saysSame(as other: Message) -> Bool {
    var version = self
    version.readBy = other.readBy
    version.unreadable = other.unreadable
    return version == other
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

  private enum CodingKeys: String, CodingKey {
    case text, senderID, timestamp, readBy, mediaType
  }
}
