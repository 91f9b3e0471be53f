import FirestoreClient
import PsstModels
import PsstServices

extension Assistant {
  private static let contactsMax = 1000
  private static let chatsMax = 100

  /// The id of the only client named by a request; nil otherwise.
  ///
  /// Only the names that the caller gave to contacts count. Names that other people choose for
  /// themselves could be any word of the question. A name that two clients share identifies neither
  /// of them.
  func client(namedBy asks: ActionRequest, of uid: String) async throws -> String? {
    guard asks.isRequest else { return nil }
    let contacts = try await firestore.collection(Client.collection).document(uid)
      .collection(Client.clients).query.limit(Self.contactsMax).get()
    let named = contacts.filter { contact in
      guard case .string(let name)? = contact["displayName"] else { return false }
      return asks.names(name)
    }
    return named.count == 1 ? named.first?.id : nil
  }

  /// The one-to-one chats of a user with a client.
  func chats(of uid: String, with client: String) async throws -> Set<DocumentReference> {
    let chats = try await firestore.collection(Chat.collection)
      .where("members", .arrayContains, uid).limit(Self.chatsMax).get()
    return Set(
      chats.filter { snapshot in
        guard let chat = documents.read(snapshot, as: Chat.self)?.value else { return false }
        return chat.isOneToOne && chat.members.contains(client)
      }
      .map(\.reference)
    )
  }
}
