public import FirestoreClient
import Foundation
public import PsstModels

/// The signed-in user's preferences for the assistant.
public struct PreferencesService: Sendable {
  private let firestore: Firestore
  private let uid: String
  private let documents: DocumentReader

  /// Creates a service for the user with the given uid, as whom `firestore` acts.
  public init(
    firestore: Firestore,
    uid: String,
    documents: DocumentReader = DocumentReader()
  ) {
    self.firestore = firestore
    self.uid = uid
    self.documents = documents
  }

  /// Returns the preferences; throws `UserServiceError`.
  public func getPreferences() async throws -> AssistantPreferences {
    try await UserServiceError.mapping { preferences(in: try await document.get()) }
  }

  /// The preferences now and after every change.
  public func observePreferences() -> Updates<AssistantPreferences> {
    Updates(document.snapshots(), errors: UserServiceError.self) { preferences(in: $0) }
  }

  /// Saves the preferences; a nil field goes back to its default.
  ///
  /// Other fields of the document stay. Throws `UserServiceError`: `invalidPreferences` for a text
  /// of more than 200 bytes, an unknown time zone, or days that are not from 1 to 365.
  public func savePreferences(_ preferences: AssistantPreferences) async throws {
    let texts = [preferences.tone, preferences.style].compactMap(\.self)
    guard texts.allSatisfy({ $0.utf8.count <= Self.textBytesMax }),
      preferences.timeZone.map({ TimeZone(identifier: $0) != nil }) ?? true,
      preferences.inactiveDays.map(Self.daysRange.contains) ?? true
    else { throw UserServiceError.invalidPreferences }
    try await UserServiceError.mapping {
      try await document.set(
        [
          "tone": preferences.tone.map { .value($0) } ?? .delete,
          "style": preferences.style.map { .value($0) } ?? .delete,
          "timeZone": preferences.timeZone.map { .value($0) } ?? .delete,
          "autoSend": preferences.autoSend.map { .value($0) } ?? .delete,
          "inactiveDays": preferences.inactiveDays.map { .value($0) } ?? .delete,
        ],
        .merge
      )
    }
  }

  private func preferences(in snapshot: DocumentSnapshot) -> AssistantPreferences {
    documents.read(snapshot, as: AssistantPreferences.self)?.value ?? AssistantPreferences()
  }

  private var document: DocumentReference {
    firestore.collection(User.collection).document(uid)
      .collection(AssistantPreferences.collection).document(AssistantPreferences.id)
  }

  /// The assistant reads no more of a text.
  private static let textBytesMax = 200
  /// The server takes other numbers as the nearest of these.
  private static let daysRange = 1...365
}
