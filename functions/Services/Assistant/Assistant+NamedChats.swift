import FirestoreClient
import PsstModels

extension Assistant {
  private static let contactsMax = 1000
  private static let chatsMax = 100

  /// The chats with one client each that a question names, by the names that the caller gave them.
  ///
  /// Names that others choose name nothing: they could be any word of the question.
  func chatsNamed(in question: String, of uid: String) async throws -> Set<String> {
    let words = QueryWords.all(in: question)
    let contacts = try await firestore.collection(Contact.collection).document(uid)
      .collection(Contact.clients).query.limit(Self.contactsMax).get()
    let named = contacts.filter { contact in
      guard case .string(let name)? = contact["displayName"] else { return false }
      let nameWords = QueryWords.all(in: name)
      return nameWords.isSubset(of: words)
        && !nameWords.subtracting(LexicalEmbedding.frequentWords).isEmpty
    }
    // A name that two clients have says of neither that they are meant.
    guard named.count == 1, let client = named.first?.id else { return [] }
    let chats = try await firestore.collection(Chat.collection)
      .where("members", .arrayContains, uid).limit(Self.chatsMax).get()
    return Set(
      chats.filter { snapshot in
        guard let chat = documents.read(snapshot, as: Chat.self)?.value else { return false }
        return chat.isOneToOne && chat.members.contains(client)
      }
      .map(\.id)
    )
  }
}
