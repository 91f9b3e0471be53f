public import FirestoreClient

/// A client as a trainer knows them, `contacts/{trainerId}/clients/{clientId}`.
public struct Contact: Codable, Sendable, Hashable {
  /// The client's uid, as `clientId`; nil in contacts of apps that leave it out.
  public var id: String?
  /// The client's uid; also the document's id.
  public var clientId: String
  /// What the trainer sees; never blank.
  public var displayName: String
  /// The client's address.
  public var email: String
  /// When the trainer got to know the client.
  public var addedAt: Timestamp
  /// When one of the two last wrote to the other; nil until then.
  public var lastContactedAt: Timestamp?
  /// Who made the contact: `trainer`, or the id of a migration's run; nil in older contacts.
  public var source: String?

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
}
