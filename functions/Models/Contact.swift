public import FirestoreClient

/// A client as a trainer knows them, `contacts/{trainerId}/clients/{clientId}`.
public struct Contact: Codable, Sendable, Hashable {
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

  /// A client of a trainer.
  public init(
    clientId: String,
    displayName: String,
    email: String,
    addedAt: Timestamp,
    lastContactedAt: Timestamp? = nil
  ) {
    self.clientId = clientId
    self.displayName = displayName
    self.email = email
    self.addedAt = addedAt
    self.lastContactedAt = lastContactedAt
  }

  /// The collection of trainers' contacts; each trainer has a place there, but no document.
  public static let collection = "contacts"
  /// Where a trainer's clients are stored, below the trainer's place.
  public static let clients = "clients"

  /// The place of a client among a trainer's contacts.
  public static func reference(
    in firestore: Firestore,
    trainerID: String,
    clientID: String
  ) -> DocumentReference {
    firestore.collection(collection).document(trainerID).collection(clients).document(clientID)
  }
}
