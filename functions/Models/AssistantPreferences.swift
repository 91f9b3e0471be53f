public import FirestoreClient

/// How a user wants the assistant to be, `users/{uid}/preferences/assistant`.
public struct AssistantPreferences: StoredDocument, Hashable {
  /// How the assistant sounds, such as `warm`.
  public var tone: String?
  /// How the assistant writes, such as `short`.
  public var style: String?
  /// The name of the user's time zone, such as `Europe/Berlin`.
  public var timeZone: String?
  /// Whether messages to chats that a question names are sent without asking.
  public var autoSend: Bool?
  /// After how many days without a message a client counts as silent.
  public var inactiveDays: Int?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

  /// Preferences of somebody who has none.
  public init() {}

  /// Reads stored preferences, of which none is necessary.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    tone = try fields.optional(.tone)
    style = try fields.optional(.style)
    timeZone = try fields.optional(.timeZone)
    autoSend = try fields.optional(.autoSend)
    inactiveDays = try fields.optional(.inactiveDays)
    unreadable = fields.unreadable
  }

  /// Where a user's preferences are stored, below the user.
  public static let collection = "preferences"
  /// The id of the assistant's preferences.
  public static let id = "assistant"

  private enum CodingKeys: String, CodingKey {
    case tone, style, timeZone, autoSend, inactiveDays
  }
}
