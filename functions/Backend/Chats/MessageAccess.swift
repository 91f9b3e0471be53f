import FirestoreClient
import PsstModels

/// The decision who may write messages in a chat, the same as that of the security rules.
struct MessageAccess: Sendable {
  let firestore: Firestore

  /// Returns true if a user may write a message in a chat now.
  ///
  /// A member may, unless the chat is that of two people of whom one has removed the other. Throws
  /// `FirestoreError`.
  func mayWrite(
    _ uid: String,
    in chat: Chat,
    _ transaction: Transaction
  ) async throws -> Bool {
    guard chat.members.contains(uid) else { return false }
    guard chat.isOneToOne, let other = chat.members.first(where: { $0 != uid }) else { return true }
    let notes = [(uid, other), (other, uid)].map { trainer, client in
      Client.removalReference(in: firestore, trainerID: trainer, clientID: client)
    }
    return try await transaction.getAll(notes).allSatisfy { !$0.exists }
  }
}
