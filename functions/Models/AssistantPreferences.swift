public import FirestoreClient

/// A user's preferences for the assistant, stored at `users/{uid}/preferences/assistant`.
public struct AssistantPreferences: StoredDocument, Hashable {
  /// The tone of the assistant, such as `warm`.
  public var tone: String?
  /// The style of the assistant's answers, such as `short`.
  public var style: String?
  /// The name of the user's time zone, such as `Europe/Berlin`.
  public var timeZone: String?
  /// True to send messages to chats that a question names without a confirmation.
  public var autoSend: Bool?
  /// The number of days without a message after which a client counts as silent.
  public var inactiveDays: Int?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

  /// Creates empty preferences, for which defaults apply.
  public init() {}

  /// Decodes stored preferences; all fields are optional.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    tone = try fields.optional(.tone)
    style = try fields.optional(.style)
    timeZone = try fields.optional(.timeZone)
    autoSend = try fields.optional(.autoSend)
    inactiveDays = try fields.optional(.inactiveDays)
    unreadable = fields.unreadable
  }

  /// The name of the collection of preferences below a user.
  public static let collection = "preferences"
  /// The id of the document with the assistant's preferences.
  public static let id = "assistant"

  private enum CodingKeys: String, CodingKey {
    case tone, style, timeZone, autoSend, inactiveDays
  }
}
