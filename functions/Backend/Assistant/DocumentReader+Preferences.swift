import FirestoreClient
import PsstModels
import PsstServices

extension DocumentReader {
  /// Reads a user's preferences for the assistant.
  ///
  /// Returns default preferences if the user has none or they cannot be read.
  func preferences(of uid: String, in firestore: Firestore) async throws -> AssistantPreferences {
    let reference = firestore.collection(User.collection).document(uid)
      .collection(AssistantPreferences.collection).document(AssistantPreferences.id)
    return read(try await reference.get(), as: AssistantPreferences.self)?.value
      ?? AssistantPreferences()
  }
}
