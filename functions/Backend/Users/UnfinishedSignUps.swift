public import FirestoreClient
import PsstModels

/// The sign-ups in the app whose account may exist without a user document.
///
/// Each has a document in `signUps`, which only the server reads and writes.
public struct UnfinishedSignUps: Sendable {
  private let firestore: Firestore

  /// Creates a service for a database.
  public init(firestore: Firestore) {
    self.firestore = firestore
  }

  /// Marks an account that is about to be created by the app.
  public func begin(_ uid: String) async throws {
    try await mark(of: uid).set(["createdAt": .serverTimestamp])
  }

  /// Returns the marked accounts that are older than an hour, the oldest first.
  ///
  /// At most 500 are returned; a later call returns the others.
  public func due(at time: Timestamp) async throws -> [String] {
    let latest = Timestamp(microseconds: time.microseconds - Self.graceMicroseconds)
    return try await firestore.collection(Self.collection)
      .where("createdAt", .lessThanOrEqual, latest).order(by: "createdAt").limit(Self.dueMax)
      .get().map(\.id)
  }

  /// Removes the mark of an account that has been looked at.
  public func end(_ uid: String) async throws {
    try await mark(of: uid).delete()
  }

  /// Returns true if an account has its user document.
  public func isComplete(_ uid: String) async throws -> Bool {
    try await document(uid).get().exists
  }

  /// Deletes the document of an account that has been removed, if the app made it meanwhile.
  public func removeDocument(_ uid: String) async throws {
    try await document(uid).delete()
  }

  private func mark(of uid: String) -> DocumentReference {
    firestore.collection(Self.collection).document(uid)
  }

  private func document(_ uid: String) -> DocumentReference {
    firestore.document("\(User.collection)/\(uid)")
  }

  private static let collection = "signUps"
  /// The app makes the document right after the account; who repeats the sign-up has an hour.
  private static let graceMicroseconds: Int64 = 3_600_000_000
  /// As many accounts as one run removes within its time limit.
  private static let dueMax = 500
}

extension BackendServices {
  /// The sign-ups that are not complete.
  public var signUps: UnfinishedSignUps { UnfinishedSignUps(firestore: firestore) }
}
