import FirestoreClient
import PsstModels

extension DocumentReader {
  /// How a user wants the assistant to be; those of somebody who has none when they cannot be read.
  func preferences(of uid: String, in firestore: Firestore) async throws -> AssistantPreferences {
    let reference = firestore.collection(User.collection).document(uid)
      .collection(AssistantPreferences.collection).document(AssistantPreferences.id)
    return read(try await reference.get(), as: AssistantPreferences.self)?.value
      ?? AssistantPreferences()
  }
}
