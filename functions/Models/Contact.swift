public import FirestoreClient

/// A client as a trainer knows them, `contacts/{trainerId}/clients/{clientId}`.
public struct Contact: StoredDocument, Hashable {
  /// The client's uid, as `clientId`; nil in contacts of apps that leave it out.
  public var id: String?
  /// The client's uid, and the document's id; empty when it cannot be read.
  public var clientId: String
  /// What the trainer sees; empty when the document has no name that can be read.
  public var displayName: String
  /// The client's address; empty when the document has none that can be read.
  public var email: String
  /// When the trainer got to know the client.
  public var addedAt: Timestamp
  /// When one of the two last wrote to the other; nil until then.
  public var lastContactedAt: Timestamp?
  /// Who made the contact: `trainer`, or the id of a migration's run; nil in older contacts.
  public var source: String?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

  /// A client of a trainer.
  public init(
    clientId: String,
    displayName: String,
    email: String,
    addedAt: Timestamp,
    lastContactedAt: Timestamp? = nil,
    source: String? = nil
  ) {
    id = clientId
    self.clientId = clientId
    self.displayName = displayName
    self.email = email
    self.addedAt = addedAt
    self.lastContactedAt = lastContactedAt
    self.source = source
  }

  /// Reads a stored contact; throws when it does not say when it was made.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    addedAt = try fields.container.decode(Timestamp.self, forKey: .addedAt)
    id = try fields.optional(.id)
    clientId = try fields.optional(.clientId) ?? ""
    displayName = try fields.optional(.displayName) ?? ""
    email = try fields.optional(.email) ?? ""
    lastContactedAt = try fields.optional(.lastContactedAt)
    source = try fields.optional(.source)
    unreadable = fields.unreadable
  }

  /// The collection of trainers' contacts; each trainer has a place there, but no document.
  public static let collection = "contacts"
  /// Where a trainer's clients are stored, below the trainer's place.
  public static let clients = "clients"
  /// Where notes of the clients that a trainer removed are stored, below the trainer's place.
  public static let removed = "removed"
  /// The source of contacts that trainers make themselves.
  public static let trainerSource = "trainer"

  /// The place of a client among a trainer's contacts.
  public static func reference(
    in firestore: Firestore,
    trainerID: String,
    clientID: String
  ) -> DocumentReference {
    firestore.collection(collection).document(trainerID).collection(clients).document(clientID)
  }

  /// The place of the note that a trainer removed a client.
  public static func removalReference(
    in firestore: Firestore,
    trainerID: String,
    clientID: String
  ) -> DocumentReference {
    firestore.collection(collection).document(trainerID).collection(removed).document(clientID)
  }

  private enum CodingKeys: String, CodingKey {
    case id, clientId, displayName, email, addedAt, lastContactedAt, source
  }
}
