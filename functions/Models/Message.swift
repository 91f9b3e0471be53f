public import FirestoreClient

/// A message in a chat, stored at `chats/{chatId}/messages/{messageId}`.
public struct Message: StoredDocument, Hashable, Identifiable {
  /// The message's id; empty if missing.
  public var id: String
  /// The text; empty for an image without text.
  public var text: String
  /// The uid of the sender.
  public var senderID: String
  /// The time at which the message was written.
  public var timestamp: Timestamp
  /// The uids of the users who have read the message.
  public var readBy: [String]
  /// The kind of attachment, such as `image`; nil for none.
  public var mediaType: String?
  /// The address of the attachment.
  public var mediaURL: String?
  /// The address of a small version of the attachment.
  public var mediaThumbnailURL: String?
  /// The size of the attachment in bytes.
  public var mediaSize: Int?
  /// The width and height of the attachment in pixels.
  public var mediaDimensions: MediaDimensions?
  /// The fields and elements of `readBy` that could not be decoded.
  public private(set) var unreadable: [ValueCodingError] = []

  /// Creates a message, by default without readers or an attachment.
  public init(
    id: String = "",
    text: String,
    senderID: String,
    timestamp: Timestamp,
    readBy: [String] = [],
    mediaType: String? = nil
  ) {
    self.id = id
    self.text = text
    self.senderID = senderID
    self.timestamp = timestamp
    self.readBy = readBy
    self.mediaType = mediaType
  }

  /// Creates a message with an image, or without one if `media` is nil.
  public init(
    id: String,
    text: String,
    senderID: String,
    timestamp: Timestamp,
    readBy: [String],
    media: MessageMedia?
  ) {
    self.init(
      id: id,
      text: text,
      senderID: senderID,
      timestamp: timestamp,
      readBy: readBy,
      mediaType: media == nil ? nil : MessageMedia.type
    )
    mediaURL = media?.url
    mediaThumbnailURL = media?.thumbnailURL
    mediaSize = media?.size
    mediaDimensions = media?.dimensions
  }

  /// The attached image; nil if there is none, or its address is missing.
  public var media: MessageMedia? {
    guard mediaType == MessageMedia.type, let mediaURL else { return nil }
    return MessageMedia(
      url: mediaURL,
      thumbnailURL: mediaThumbnailURL,
      size: mediaSize,
      dimensions: mediaDimensions
    )
  }

  /// Decodes a stored message; images have no text and new messages no readers.
  ///
  /// Throws if the sender or the time is missing, or if the text is not a string.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    text = try fields.container.decodeIfPresent(String.self, forKey: .text) ?? ""
    senderID = try fields.container.decode(StoredUID.self, forKey: .senderID).text
    timestamp = try fields.container.decode(Timestamp.self, forKey: .timestamp)
    readBy = try fields.optionalElements(.readBy)
    id = try fields.optional(.id) ?? ""
    mediaType = try fields.optional(.mediaType)
    mediaURL = try fields.optional(.mediaURL)
    mediaThumbnailURL = try fields.optional(.mediaThumbnailURL)
    mediaSize = try fields.optional(.mediaSize)
    mediaDimensions = try fields.optional(.mediaDimensions)
    unreadable = fields.unreadable
  }

  /// Returns true if another version of the message differs at most in its readers.
  public func saysSame(as other: Message) -> Bool {
    var version = self
    version.readBy = other.readBy
    version.unreadable = other.unreadable
    return version == other
  }

  /// The text shown for the message in a list of chats or a notification, or `Photo`.
  ///
  /// Only the beginning of a long text is used, because each chat stores a copy.
  public var preview: String {
    let isBlank = text.allSatisfy(\.isWhitespace)
    return isBlank && mediaType != nil ? "Photo" : text.prefix(bytesMax: Self.previewBytesMax)
  }

  private static let previewBytesMax = 2000

  /// The name of the collection of messages below a chat.
  public static let collection = "messages"

  private enum CodingKeys: String, CodingKey {
    case id, text, senderID, timestamp, readBy, mediaType, mediaURL, mediaThumbnailURL, mediaSize
    case mediaDimensions
  }
}
