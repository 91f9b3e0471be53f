import FirestoreClient
import PsstModels

/// The decision who may write messages in a chat, the same as that of the security rules.
struct MessageAccess: Sendable {
  let firestore: Firestore

  /// Returns true if a user may write a message in a chat now.
  ///
  /// A member may, unless the chat has two members of whom one has removed the other. Throws
  /// `FirestoreError`.
  func mayWrite(
    _ uid: String,
    in chat: Chat,
    _ transaction: Transaction
  ) async throws -> Bool {
    guard chat.members.contains(uid) else { return false }
    let others = Set(chat.members).subtracting([uid])
    guard others.count == 1, let other = others.first, other.isDocumentID else { return true }
    let notes = [(uid, other), (other, uid)].map { trainer, client in
      Client.removalReference(in: firestore, trainerID: trainer, clientID: client)
    }
    return try await transaction.getAll(notes).allSatisfy { !$0.exists }
  }
}
