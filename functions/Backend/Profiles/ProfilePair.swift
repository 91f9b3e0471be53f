import FirestoreClient
import PsstModels
import PsstServices

/// A trainer, and a client of whom the trainer keeps a profile.
struct ProfilePair: Sendable, Hashable {
  var trainerID: String
  var clientID: String
}

extension ProfilePair {
  /// Returns the reference of the profile that the trainer keeps of the client.
  func profile(in firestore: Firestore) -> DocumentReference {
    firestore.collection(ClientProfile.collection).document(trainerID)
      .collection(ClientProfile.clients).document(clientID)
  }

  /// Returns the collection of the readings from which the profile is composed.
  func readings(in firestore: Firestore) -> CollectionReference {
    profile(in: firestore).collection(ProfileReading.collection)
  }

  /// Returns the reference of a message's reading, by the message's key.
  ///
  /// A key may begin and end with underscores. The prefix is needed because Firestore reserves such
  /// ids.
  func reading(_ key: String, in firestore: Firestore) -> DocumentReference {
    readings(in: firestore).document("r-" + key)
  }

  /// Returns the reference of the client in the trainer's contacts.
  func contact(in firestore: Firestore) -> DocumentReference {
    Client.reference(in: firestore, trainerID: trainerID, clientID: clientID)
  }
}

/// The two members of a chat, if they are a trainer and a client.
struct ProfilePeople: Sendable {
  var pair: ProfilePair
  var clientName: String

  /// Returns true if a user is the trainer or the client.
  func has(_ uid: String) -> Bool { uid == pair.trainerID || uid == pair.clientID }

  /// Reads the two members of a chat.
  ///
  /// Throws a `SkipError` if they are not a trainer and a client.
  init(of chat: Lenient<Chat>?, in firestore: Firestore, _ documents: DocumentReader) async throws {
    switch chat {
    case nil: throw SkipError.chatMissing
    case .unreadable(let error): throw SkipError.chatUnreadable(error)
    case .readable(let chat):
      if chat.isGroupChat { throw SkipError.groupChat }
      guard chat.isOneToOne else { throw SkipError.notOneToOne }
      let members = Set(chat.members).sorted()
      let users = firestore.collection(User.collection)
      let people = try await firestore.getAll(members.map { users.document($0) })
        .compactMap { snapshot in
          documents.read(snapshot, as: User.self)?.value.map { (uid: snapshot.id, user: $0) }
        }
      guard people.count == members.count else { throw SkipError.memberUnknown }
      guard people.allSatisfy({ $0.user.effectiveRole != nil }) else {
        throw SkipError.roleUnknown
      }
      guard let trainer = people.first(where: { $0.user.effectiveRole == .trainer }) else {
        throw SkipError.clientsOnly
      }
      guard let client = people.first(where: { $0.user.effectiveRole == .client }) else {
        throw SkipError.trainersOnly
      }
      pair = ProfilePair(trainerID: trainer.uid, clientID: client.uid)
      clientName = client.user.displayName
    }
  }
}
