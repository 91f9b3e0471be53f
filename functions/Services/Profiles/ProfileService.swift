public import FirestoreClient
import Foundation
public import PsstModels

/// The profiles that the signed-in trainer has of their clients.
///
/// The server writes what messages say; the trainer reviews it. Only the trainer of a profile can
/// read it.
public struct ProfileService: Sendable {
  private let firestore: Firestore
  private let trainerID: String
  private let documents: DocumentReader

  /// Creates a service for the trainer with the given uid, as whom `firestore` acts.
  public init(
    firestore: Firestore,
    uid: String,
    documents: DocumentReader = DocumentReader()
  ) {
    self.firestore = firestore
    trainerID = uid
    self.documents = documents
  }

  // MARK: Reading

  /// Returns the profile of a client; throws `ProfileError`, for example `profileNotFound`.
  public func getProfile(of clientID: String) async throws -> ClientProfile {
    try await ProfileError.mapping { try await stored(clientID).profile }
  }

  /// The profile of a client now and after every change; nil while there is none.
  public func observeProfile(of clientID: String) -> Updates<ClientProfile?> {
    Updates(reference(clientID).snapshots(), errors: ProfileError.self) { snapshot in
      documents.read(snapshot, as: ClientProfile.self)?.value
    }
  }

  // MARK: Review

  /// Confirms an item, which then stays until the trainer removes it.
  ///
  /// Throws `ProfileError`.
  public func confirmItem(_ itemID: String, of clientID: String) async throws {
    try await changeItem(itemID, of: clientID) { $0.confirmed = true }
  }

  /// Corrects the text of an item, which also confirms it; throws `ProfileError`.
  public func updateItem(_ itemID: String, of clientID: String, text: String) async throws {
    let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard text.utf16.count <= Self.textLengthMax, DisplayName.isVisible(text) else {
      throw ProfileError.invalidText
    }
    try await changeItem(itemID, of: clientID) { item in
      item.text = text
      item.confirmed = true
    }
  }

  /// Removes an item; later messages do not add it back.
  ///
  /// The ids of the last 500 removed items are remembered. Throws `ProfileError`.
  public func removeItem(_ itemID: String, of clientID: String) async throws {
    try await change(clientID) { profile in
      guard let (category, index) = profile.place(of: itemID) else {
        throw ProfileError.itemNotFound
      }
      profile[category].remove(at: index)
      let removed = profile.removedItemIds.filter { $0 != itemID } + [itemID]
      profile.removedItemIds = removed.suffix(Self.removedMax)
      return [
        category.rawValue: profile.stored(category),
        "removedItemIds": .value(profile.removedItemIds),
        "totalItems": .value(profile.itemsCount),
      ]
    }
  }

  /// Records that the trainer has looked through the profile; throws `ProfileError`.
  public func markReviewed(_ clientID: String) async throws {
    try await change(clientID) { _ in ["lastReviewedAt": .serverTimestamp] }
  }

  // MARK: Helpers

  private func changeItem(
    _ itemID: String,
    of clientID: String,
    _ body: (inout ProfileItem) -> Void
  ) async throws {
    try await change(clientID) { profile in
      guard let (category, index) = profile.place(of: itemID) else {
        throw ProfileError.itemNotFound
      }
      body(&profile[category][index])
      return [category.rawValue: profile.stored(category)]
    }
  }

  /// Changes the profile as it is now.
  ///
  /// The server changes it, too, while messages come. A change of an older version is therefore
  /// made again.
  private func change(
    _ clientID: String,
    _ body: (inout ClientProfile) throws -> [String: FieldValue]
  ) async throws {
    try await ProfileError.mapping {
      for _ in 0..<Self.attemptsMax {
        var (profile, time) = try await stored(clientID)
        let fields = try body(&profile)
        do {
          try await reference(clientID).update(
            fields.merging(["updatedAt": .serverTimestamp]) { $1 },
            lastUpdated: time
          )
          return
        } catch let error as FirestoreError
          where [.failedPrecondition, .aborted].contains(error.code)
        {}
      }
      throw ProfileError.networkError
    }
  }

  private func stored(_ clientID: String) async throws -> (profile: ClientProfile, Timestamp?) {
    guard clientID.isUserID else { throw ProfileError.profileNotFound }
    let snapshot = try await reference(clientID).get()
    switch documents.read(snapshot, as: ClientProfile.self) {
    case .readable(let profile): return (profile, snapshot.updateTime)
    case .unreadable(let error): throw ProfileError.refused("\(error)")
    case nil: throw ProfileError.profileNotFound
    }
  }

  private func reference(_ clientID: String) -> DocumentReference {
    firestore.collection(ClientProfile.collection).document(trainerID)
      .collection(ClientProfile.clients).document(clientID)
  }

  /// The number of times a change is tried while the server changes the profile.
  private static let attemptsMax = 5
  private static let textLengthMax = 500
  /// The number of removed ids that are remembered; the access rules enforce the same limit.
  private static let removedMax = 500
}

extension ClientProfile {
  /// Returns the category of an item and its index in the category's list.
  fileprivate func place(of itemID: String) -> (ProfileCategory, Int)? {
    for category in ProfileCategory.allCases {
      if let index = self[category].firstIndex(where: { $0.id == itemID }) {
        return (category, index)
      }
    }
    return nil
  }
}
