public import FirestoreClient
import PsstModels

/// The sign-ups whose account exists without a user document.
public struct UnfinishedSignUps: Sendable {
  private let firestore: Firestore

  /// Creates a service for a database.
  public init(firestore: Firestore) {
    self.firestore = firestore
  }

  /// Returns true if an account has its user document.
  public func isComplete(_ uid: String) async throws -> Bool {
    try await document(uid).get().exists
  }

  /// Deletes the document of an account that has been removed, if the app made it meanwhile.
  public func removeDocument(_ uid: String) async throws {
    try await document(uid).delete()
  }

  private func document(_ uid: String) -> DocumentReference {
    firestore.document("\(User.collection)/\(uid)")
  }
}

extension BackendServices {
  /// The sign-ups that are not complete.
  public var signUps: UnfinishedSignUps { UnfinishedSignUps(firestore: firestore) }
}
