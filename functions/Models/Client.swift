public import FirestoreClient

/// A client in a trainer's contacts, stored at `contacts/{trainerId}/clients/{clientId}`.
public struct Client: StoredDocument, Contact, Hashable {
  /// The client's uid, which is also the document's id; empty if missing.
  public var id: String
  /// A copy of `id`; empty if unreadable.
  public var clientId: String
  /// The name that the trainer sees; empty if missing or unreadable.
  public var displayName: String
  /// The client's email address; empty if missing or unreadable.
  public var email: String
  /// The time at which the contact was added.
  public var addedAt: Timestamp
  /// The time of the last message between the two; nil if there is none.
  public var lastContactedAt: Timestamp?
  /// The creator of the contact.
  ///
  /// It is `trainer`, or the id of a migration's run, or nil in older contacts.
  public var source: String?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

  /// Creates a contact.
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

  /// Decodes a stored contact.
  ///
  /// Throws if `addedAt` is missing or unreadable.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    addedAt = try fields.container.decode(Timestamp.self, forKey: .addedAt)
    clientId = try fields.optional(.clientId) ?? ""
    id = try fields.optional(.id) ?? clientId
    displayName = try fields.optional(.displayName) ?? ""
    email = try fields.optional(.email) ?? ""
    lastContactedAt = try fields.optional(.lastContactedAt)
    source = try fields.optional(.source)
    unreadable = fields.unreadable
  }

  /// The name of the collection of trainers' contacts.
  ///
  /// A trainer's contacts are below the trainer's id, where no document exists.
  public static let collection = "contacts"
  /// The name of the collection of clients below a trainer's id.
  public static let clients = "clients"
  /// The name of the collection, below a trainer's id, of records of removed clients.
  public static let removed = "removed"
  /// The source of contacts that trainers create themselves.
  public static let trainerSource = "trainer"

  /// Returns the reference of a client in a trainer's contacts.
  public static func reference(
    in firestore: Firestore,
    trainerID: String,
    clientID: String
  ) -> DocumentReference {
    firestore.collection(collection).document(trainerID).collection(clients).document(clientID)
  }

  /// Returns the reference of the record that a trainer removed a client.
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
