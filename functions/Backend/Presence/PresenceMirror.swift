public import FirestoreClient
public import PsstModels
public import PsstServices

extension BackendServices {
  /// The copies of presences in Firestore.
  public var presences: PresenceMirror {
    PresenceMirror(firestore: firestore, documents: documents)
  }
}

/// The copies in Firestore of the presences that apps write to the Realtime Database.
public struct PresenceMirror: Sendable {
  private let firestore: Firestore
  private let documents: DocumentReader

  /// Creates the copies in a database.
  public init(firestore: Firestore, documents: DocumentReader) {
    self.firestore = firestore
    self.documents = documents
  }

  /// The outcome for a presence.
  public enum Outcome: Sendable, Hashable {
    case copied
    /// A newer presence is stored already.
    case older
    /// The presence is stored already.
    case same
    /// The key is not the id of a user.
    case noUser
  }

  /// Stores a presence, unless a newer one is stored; nil stands for a presence that is gone.
  ///
  /// `time` is the time of the change, beyond which no user was seen: an app may write any time.
  /// Throws `FirestoreError`.
  public func mirror(
    _ presence: UserPresence?,
    of uid: String,
    at time: Timestamp?
  ) async throws -> Outcome {
    guard uid.isUserID else { return .noUser }
    var presence = presence ?? UserPresence(online: false, lastSeen: time)
    if let time { presence.lastSeen = min(presence.lastSeen ?? time, time) }
    let new = presence
    let reference = firestore.collection(UserPresence.collection).document(uid)
    return try await firestore.runTransaction { transaction in
      let snapshot = try await transaction.get(reference)
      let stored = documents.read(snapshot, as: UserPresence.self)?.value
      if let old = stored?.lastSeen, let newTime = new.lastSeen {
        if old > newTime { return .older }
        if old == newTime, stored?.online == new.online { return .same }
      }
      try transaction.set(reference, new)
      return .copied
    }
  }
}
