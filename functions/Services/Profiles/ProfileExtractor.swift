public import FirestoreClient
import PsstModels

/// Keeps clients' profiles in step with what they and their trainers write.
///
/// Acts on the message as it is now: a message that changes while the model reads it is read again.
/// An unchanged message is not read twice, so that a model that says the same in other words does
/// not fill the profile.
public struct ProfileExtractor: Sendable {
  private let firestore: Firestore
  private let model: (any ChatModel)?
  private let documents: DocumentReader

  /// The most rounds; a message that changes more often meanwhile is left to a later attempt.
  private static let roundsMax = 3

  /// An extractor for the profiles of a database; without a model it skips every message.
  public init(firestore: Firestore, model: (any ChatModel)?, documents: DocumentReader) {
    self.firestore = firestore
    self.model = model
    self.documents = documents
  }

  /// What happened to a message.
  public enum Outcome: Sendable, Hashable {
    case merged(Merged)
    case skipped(SkipReason)
  }

  /// What a message did to the profile of its client.
  public struct Merged: Sendable, Hashable {
    /// Facts that are new.
    public var added: Int
    /// Facts that were already known.
    public var refreshed: Int
    /// The model that read the message.
    public var model: String
    /// What the reading cost.
    public var usage: TokenUsage
  }

  /// Merges what one message says about the client into their profile.
  ///
  /// Throws `ServiceError` or `FirestoreError`; repeating the call later does what is left.
  public func extract(chatID: String, messageID: String) async throws -> Outcome {
    guard let model else { return .skipped(.noModel) }
    let place = ProfileMerge.MessagePlace(chatID: chatID, messageID: messageID)
    var usage = TokenUsage()
    for _ in 1...Self.roundsMax {
      switch try await read(place) {
      case .failure(let skip): return .skipped(skip.reason)
      case .success(let source):
        let answer = try await FactReader(model: model).facts(in: source)
        usage += answer.usage
        switch try await merge(answer.output, of: source) {
        case .changed: continue
        case .skipped(let reason): return .skipped(reason)
        case .merged(let added, let refreshed):
          return .merged(
            Merged(added: added, refreshed: refreshed, model: model.name, usage: usage)
          )
        }
      }
    }
    throw ServiceError(.unavailable, "message \(messageID) keeps changing; try later")
  }

  // MARK: Reading

  private struct Skip: Error {
    var reason: SkipReason
    init(_ reason: SkipReason) { self.reason = reason }
  }

  private func read(
    _ place: ProfileMerge.MessagePlace
  ) async throws -> Result<ProfileSource, Skip> {
    let chatReference = firestore.collection(Chat.collection).document(place.chatID)
    let snapshots = try await firestore.getAll([reference(place), chatReference])
    let message: Message
    switch documents.read(snapshots[0], as: Message.self) {
    case .readable(let readable): message = readable
    case .unreadable(let error): return .failure(Skip(.messageUnreadable(error)))
    case nil: return .failure(Skip(.messageGone))
    }
    let chat: Chat
    switch documents.read(snapshots[1], as: Chat.self) {
    case .readable(let readable): chat = readable
    case .unreadable(let error): return .failure(Skip(.chatUnreadable(error)))
    case nil: return .failure(Skip(.chatMissing))
    }
    if let reason = Self.reasonToSkip(message, in: chat) { return .failure(Skip(reason)) }

    let members = Array(Set(chat.members))
    let users = try await firestore.getAll(members.map(user))
    let people = zip(members, users).compactMap { uid, user in
      documents.read(user, as: User.self)?.value.map { (uid, $0) }
    }
    guard people.count == members.count else { return .failure(Skip(.memberUnknown)) }
    guard people.allSatisfy({ $0.1.effectiveRole != nil }) else {
      return .failure(Skip(.roleUnknown))
    }
    guard let trainer = people.first(where: { $0.1.effectiveRole == .trainer }) else {
      return .failure(Skip(.clientsOnly))
    }
    guard let client = people.first(where: { $0.1.effectiveRole == .client }) else {
      return .failure(Skip(.trainersOnly))
    }
    let source = ProfileSource(
      place: place,
      message: message,
      trainerID: trainer.0,
      clientID: client.0,
      clientName: client.1.displayName
    )
    // This is checked again when it counts; here it saves paying a model for nothing.
    let profile = try await profileReference(of: source).get()
    if let reason = reasonToSkip(source, profile: profile, message: snapshots[0]) {
      return .failure(Skip(reason))
    }
    return .success(source)
  }

  private static func reasonToSkip(_ message: Message, in chat: Chat) -> SkipReason? {
    if chat.isGroupChat { return .groupChat }
    guard chat.isOneToOne else { return .notOneToOne }
    guard chat.members.contains(message.senderID) else { return .strangerSent }
    guard message.text.contains(where: { !$0.isWhitespace }) else {
      return message.mediaType == nil ? .blankText : .mediaWithoutText
    }
    if SmallTalk.matches(message.text) { return .smallTalk }
    return nil
  }

  private func reasonToSkip(
    _ source: ProfileSource,
    profile: DocumentSnapshot,
    message: DocumentSnapshot
  ) -> SkipReason? {
    switch documents.read(profile, as: ClientProfile.self) {
    case nil: return nil
    case .unreadable(let error): return .profileUnreadable(error)
    case .readable(let profile):
      let isAsCreated = message.updateTime == message.createTime
      return isAsCreated && ProfileMerge(profile).hasItems(of: source.place) ? .readBefore : nil
    }
  }

  private func reference(_ place: ProfileMerge.MessagePlace) -> DocumentReference {
    firestore.collection(Chat.collection).document(place.chatID).collection(Message.collection)
      .document(place.messageID)
  }

  private func user(_ uid: String) -> DocumentReference {
    firestore.collection(User.collection).document(uid)
  }

  private func profileReference(of source: ProfileSource) -> DocumentReference {
    firestore.collection(ClientProfile.collection).document(source.trainerID)
      .collection(ClientProfile.clients).document(source.clientID)
  }

  // MARK: Merging

  private enum MergeOutcome: Sendable {
    /// The message has changed since it was read.
    case changed
    case skipped(SkipReason)
    case merged(added: Int, refreshed: Int)
  }

  private func merge(
    _ facts: [ProfileItem],
    of source: ProfileSource
  ) async throws -> MergeOutcome {
    let profileReference = profileReference(of: source)
    return try await firestore.runTransaction { transaction in
      let snapshots = try await transaction.getAll([reference(source.place), profileReference])
      guard snapshots[0].exists else { return .skipped(.messageGone) }
      guard let message = documents.read(snapshots[0], as: Message.self)?.value,
        source.isSame(message)
      else { return .changed }
      if let reason = reasonToSkip(source, profile: snapshots[1], message: snapshots[0]) {
        return .skipped(reason)
      }
      guard !facts.isEmpty else { return .merged(added: 0, refreshed: 0) }
      let stored = documents.read(snapshots[1], as: ClientProfile.self)?.value
      let before =
        stored ?? ClientProfile(clientId: source.clientID, trainerId: source.trainerID)
      var merge = ProfileMerge(before)
      let times = try await times(of: merge.messagesInQuestion(for: facts), transaction)
      merge.add(facts, times: times)
      try write(merge.profile, over: stored, at: profileReference, transaction)
      return .merged(added: merge.added, refreshed: merge.refreshed)
    }
  }

  private func times(
    of places: Set<ProfileMerge.MessagePlace>,
    _ transaction: Transaction
  ) async throws -> [ProfileMerge.MessagePlace: Timestamp] {
    // An item that did not come from a message may have anything in these fields.
    let places = places.filter { isID($0.chatID) && isID($0.messageID) }
    let snapshots = try await transaction.getAll(places.map { reference($0) })
    var times: [ProfileMerge.MessagePlace: Timestamp] = [:]
    for (place, snapshot) in zip(places, snapshots) {
      if case .timestamp(let time)? = snapshot["timestamp"] { times[place] = time }
    }
    return times
  }

  private func isID(_ text: String) -> Bool { !text.isEmpty && !text.contains("/") }

  /// Writes only what is different, so that an event that comes twice writes once.
  private func write(
    _ profile: ClientProfile,
    over stored: ClientProfile?,
    at reference: DocumentReference,
    _ transaction: Transaction
  ) throws {
    guard profile != stored else { return }
    var fields: [String: FieldValue] = [
      "totalItems": .value(profile.totalItems), "updatedAt": .serverTimestamp,
    ]
    for category in ProfileCategory.allCases where profile[category] != stored?[category] {
      fields[category.rawValue] = .value(profile[category])
    }
    if stored == nil {
      fields["clientId"] = .value(profile.clientId)
      fields["trainerId"] = .value(profile.trainerId)
      fields["createdAt"] = .serverTimestamp
      try transaction.set(reference, fields)
    } else {
      try transaction.update(reference, fields)
    }
  }
}
