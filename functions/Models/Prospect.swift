public import FirestoreClient

/// A person who has no account yet, stored at `contacts/{trainerId}/prospects/{prospectId}`.
public struct Prospect: StoredDocument, Contact, Hashable {
  /// The document's id; empty if missing.
  public var id: String
  /// A copy of `id`; empty if unreadable.
  public var prospectId: String
  /// The name that the trainer sees; empty if missing or unreadable.
  public var displayName: String
  /// A placeholder address, such as `prospect-anna-smith@psst.app`.
  public var placeholderEmail: String
  /// The time at which the prospect was added.
  public var addedAt: Timestamp
  /// The uid of the client that the prospect became; nil while they are a prospect.
  public var convertedToClientId: String?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

  /// Creates a prospect.
  public init(
    id: String,
    displayName: String,
    placeholderEmail: String,
    addedAt: Timestamp,
    convertedToClientId: String? = nil
  ) {
    self.id = id
    prospectId = id
    self.displayName = displayName
    self.placeholderEmail = placeholderEmail
    self.addedAt = addedAt
    self.convertedToClientId = convertedToClientId
  }

  /// Decodes a stored prospect.
  ///
  /// Throws if `addedAt` is missing or unreadable.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    addedAt = try fields.container.decode(Timestamp.self, forKey: .addedAt)
    prospectId = try fields.optional(.prospectId) ?? ""
    id = try fields.optional(.id) ?? prospectId
    displayName = try fields.optional(.displayName) ?? ""
    placeholderEmail = try fields.optional(.placeholderEmail) ?? ""
    convertedToClientId = try fields.optional(.convertedToClientId)
    unreadable = fields.unreadable
  }

  /// The name of the collection of prospects below a trainer's id in `contacts`.
  public static let collection = "prospects"

  private enum CodingKeys: String, CodingKey {
    case id, prospectId, displayName, placeholderEmail, addedAt, convertedToClientId
  }
}
