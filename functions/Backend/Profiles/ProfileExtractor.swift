public import FirestoreClient
import PsstModels
public import PsstServices

/// An extractor that keeps clients' profiles up to date with the messages in their chats.
///
/// It acts on the current message and reads again if the message changes during the reading. The
/// reading of a message's version is stored in one transaction with the profile. No version is
/// therefore paid for twice, and facts are removed together with their message.
public struct ProfileExtractor: Sendable {
  private let firestore: Firestore
  private let model: (any ChatModel)?
  private let documents: DocumentReader

  /// The maximum number of repetitions.
  ///
  /// A message that changes more often is left to a later attempt.
  private static let roundsMax = 3
  /// The time for which one worker claims a version of a message, in microseconds.
  ///
  /// It is at least the timeout of the worker's function.
  private static let claimTime: Int64 = 300_000_000
  /// The number of latest messages with facts from which a profile is composed.
  ///
  /// Facts of earlier messages stay unchanged until their own message is edited or deleted.
  private static let readingsMax = 300

  /// Creates an extractor for the profiles of a database; without a model it reads no message.
  public init(firestore: Firestore, model: (any ChatModel)?, documents: DocumentReader) {
    self.firestore = firestore
    self.model = model
    self.documents = documents
  }

  /// The outcome for a message.
  public enum Outcome: Sendable, Hashable {
    /// The model read the message, and the profile was updated.
    case merged(Merged)
    /// Facts that the message no longer states were removed from the profile.
    case retracted(removed: Int)
    /// Another worker is reading the message.
    case busy
    case skipped(SkipError)
  }

  /// The changes that a message made to its client's profile.
  public struct Merged: Sendable, Hashable {
    /// The number of new facts.
    public var added: Int
    /// The number of facts that were known and are now more recent.
    public var refreshed: Int
    /// The number of facts removed from the profile, such as those of an edited text.
    public var removed: Int
    /// The name of the model that read the message.
    public var model: String
    /// The tokens used by the reading.
    public var usage: TokenUsage
  }

  /// Updates the profile of a message's client from the message.
  ///
  /// The sender pays for the reading. Throws `ServiceError` or `FirestoreError`; a repeated call
  /// does the remaining work.
  public func extract(chatID: String, messageID: String) async throws -> Outcome {
    var usage = TokenUsage()
    return try await extract(
      MessagePlace(chatID: chatID, messageID: messageID),
      payer: nil,
      usage: &usage
    )
  }

  /// Updates the profile of a message's client, at the cost of the given payer.
  ///
  /// The sender pays if `payer` is nil. The model's usage is added to `usage` even if the reading
  /// fails.
  func extract(
    _ place: MessagePlace,
    payer: Payer?,
    usage: inout TokenUsage
  ) async throws -> Outcome {
    guard let key = place.key else { return .skipped(.idTooLong) }
    var removed = 0
    for _ in 1...Self.roundsMax {
      let seen = try await see(place, key)
      for pair in seen.outdated { removed += try await retract(place, key, from: pair) }
      let source: ProfileSource
      do {
        source = try seen.source.get()
      } catch {
        return removed > 0 ? .retracted(removed: removed) : .skipped(error)
      }
      guard let model else { return .skipped(.noModel) }
      try model.check(for: payer ?? .user(source.message.senderID))
      switch try await claim(source, key) {
      case .taken: break
      case .read: return .skipped(.readBefore)
      case .busy: return .busy
      }
      let answer: ChatAnswer<[ProfileItem]>
      do {
        answer = try await FactReader(model: model).facts(in: source, for: payer)
      } catch let error as ServiceError {
        usage += error.usage
        try await giveUp(source, key, error)
        throw error
      }
      usage += answer.usage
      switch try await merge(answer.output, of: source, key) {
      case .changed: continue
      case .skipped(let reason): return .skipped(reason)
      case .merged(let change):
        return .merged(
          Merged(
            added: change.added,
            refreshed: change.refreshed,
            removed: removed + change.removed,
            model: model.name,
            usage: usage
          )
        )
      }
    }
    throw ServiceError(.unavailable, "message \(place.messageID) keeps changing; try later")
  }

  // MARK: Reading

  /// The current state of a message, its readings and its profile.
  private struct Seen {
    /// The message to read, or the reason that nothing is read.
    var source: Result<ProfileSource, SkipError>
    /// The pairs whose profile may contain facts that the message no longer states.
    var outdated: [ProfilePair] = []
  }

  private func see(_ place: MessagePlace, _ key: String) async throws -> Seen {
    let chatReference = firestore.collection(Chat.collection).document(place.chatID)
    let snapshots = try await firestore.getAll([reference(place), chatReference])
    let content = content(snapshots[0])
    // The chat may have been deleted or have other members by now.
    let readings = try await firestore.collectionGroup(ProfileReading.collection)
      .where("id", .equal, key).get()
      .compactMap { try $0.data(as: Lenient<ProfileReading>.self).value }
    var seen = Seen(
      source: .failure(.readBefore),
      outdated: readings.filter { content.version == nil || $0.isOutdated(by: content.version) }
        .map(\.pair)
    )
    do {
      let chat = documents.read(snapshots[1], as: Chat.self)
      let people = try await ProfilePeople(of: chat, in: firestore, documents)
      let isRead = readings.contains { reading in
        reading.pair == people.pair
          && content.version.map { reading.covers($0, by: model?.name) } ?? false
      }
      guard !isRead else { return seen }
      let pair = people.pair
      let stored = try await firestore.getAll([
        pair.profile(in: firestore), pair.contact(in: firestore),
      ])
      let profile = documents.read(stored[0], as: ClientProfile.self)
      // A profile can have items of a message that has no reading.
      if content.version == nil, profile?.value?.hasUnconfirmedItems(of: place) ?? false {
        seen.outdated.append(pair)
      }
      // The transactions check all this again. Here it avoids paying a model for nothing.
      let message = try content.get()
      guard chat?.value?.members.contains(message.senderID) ?? false else {
        throw SkipError.strangerSent
      }
      guard stored[1].exists else { throw SkipError.noContact }
      if let error = profile?.error { throw SkipError.profileUnreadable(error) }
      seen.source = .success(
        ProfileSource(
          place: place,
          message: message,
          time: min(message.timestamp, snapshots[0].createTime ?? snapshots[0].readTime),
          pair: pair,
          clientName: people.clientName
        )
      )
    } catch let reason as SkipError {
      seen.source = .failure(content.failure ?? reason)
    }
    return seen
  }

  /// Returns a message that has content for a model, or the reason that it has none.
  func content(_ snapshot: DocumentSnapshot) -> Result<Message, SkipError> {
    switch documents.read(snapshot, as: Message.self) {
    case nil: .failure(.messageGone)
    case .unreadable(let error): .failure(.messageUnreadable(error))
    case .readable(let message) where !message.text.contains { !$0.isWhitespace }:
      .failure(message.mediaType == nil ? .blankText : .mediaWithoutText)
    case .readable(let message) where SmallTalk.matches(message.text): .failure(.smallTalk)
    case .readable(let message): .success(message)
    }
  }

  private func reference(_ place: MessagePlace) -> DocumentReference {
    firestore.collection(Chat.collection).document(place.chatID).collection(Message.collection)
      .document(place.messageID)
  }

  // MARK: Claiming

  private enum Claim: Sendable {
    case taken, read, busy
  }

  /// Claims a version of a message, so that no other worker pays for the same reading.
  private func claim(_ source: ProfileSource, _ key: String) async throws -> Claim {
    let reference = source.pair.reading(key, in: firestore)
    let version = source.message.version
    return try await firestore.runTransaction { transaction in
      let snapshot = try await transaction.get(reference)
      var reading = Self.reading(snapshot) ?? ProfileReading(source, key, version: "")
      if reading.covers(version, by: model?.name) { return .read }
      if reading.claimedVersion == version, let until = reading.claimedUntil,
        until > snapshot.readTime
      {
        return .busy
      }
      reading.claimedVersion = version
      reading.claimedUntil = Timestamp(
        microseconds: snapshot.readTime.microseconds + Self.claimTime
      )
      try transaction.set(reference, reading)
      return .taken
    }
  }

  /// Releases a claim after the model failed.
  ///
  /// A version that the model refuses is not sent to it again.
  private func giveUp(_ source: ProfileSource, _ key: String, _ error: ServiceError) async throws {
    let reference = source.pair.reading(key, in: firestore)
    try await firestore.runTransaction { transaction in
      let snapshot = try await transaction.get(reference)
      guard var reading = Self.reading(snapshot), reading.claimedVersion == source.message.version
      else { return }
      (reading.claimedVersion, reading.claimedUntil) = (nil, nil)
      if error.kind == .refused {
        reading.version = source.message.version
        (reading.problem, reading.model) = (error.message, model?.name)
      }
      try transaction.set(reference, reading)
    }
  }

  private static func reading(_ snapshot: DocumentSnapshot) -> ProfileReading? {
    // A reading that is missing or cannot be read counts as none.
    try? snapshot.data(as: Lenient<ProfileReading>.self).value
  }

  // MARK: Merging

  private enum MergeOutcome: Sendable {
    /// The message has changed since the model read it.
    case changed
    case skipped(SkipError)
    case merged(ProfileChange)
  }

  /// Stores the facts that the model found, and updates the profile with them.
  private func merge(
    _ facts: [ProfileItem],
    of source: ProfileSource,
    _ key: String
  ) async throws -> MergeOutcome {
    let pair = source.pair
    let version = source.message.version
    return try await firestore.runTransaction { transaction in
      let snapshots = try await transaction.getAll([
        reference(source.place), pair.contact(in: firestore), pair.reading(key, in: firestore),
        pair.profile(in: firestore),
      ])
      switch content(snapshots[0]) {
      case .success(let message) where message.version == version: break
      case .failure(.messageGone): return .skipped(.messageGone)
      default: return .changed
      }
      guard snapshots[1].exists else { return .skipped(.noContact) }
      let former = Self.reading(snapshots[2])
      if former?.covers(version, by: model?.name) ?? false { return .skipped(.readBefore) }
      let stored: ClientProfile?
      switch documents.read(snapshots[3], as: ClientProfile.self) {
      case .unreadable(let error): return .skipped(.profileUnreadable(error))
      case .readable(let profile): stored = profile
      case nil: stored = nil
      }
      var reading = ProfileReading(source, key, version: version)
      reading.facts = facts
      reading.factsAt = facts.isEmpty ? nil : source.time
      let hadItems = stored?.hasUnconfirmedItems(of: source.place) ?? false
      guard !facts.isEmpty || hadItems else {
        try transaction.set(pair.reading(key, in: firestore), reading)
        return .merged(ProfileChange())
      }
      return .merged(try await fold(reading, former, over: stored, transaction))
    }
  }

  /// Removes facts that a message no longer states, and returns their number.
  private func retract(
    _ place: MessagePlace,
    _ key: String,
    from pair: ProfilePair
  ) async throws -> Int {
    let reference = pair.reading(key, in: firestore)
    return try await firestore.runTransaction { transaction in
      let snapshots = try await transaction.getAll([
        self.reference(place), reference, pair.profile(in: firestore),
      ])
      let version = content(snapshots[0]).version
      let former = Self.reading(snapshots[1])
      // The message may have its earlier text again.
      if version != nil, !(former?.isOutdated(by: version) ?? true) { return 0 }
      let stored = documents.read(snapshots[2], as: ClientProfile.self)?.value
      let hadFacts =
        former?.factsAt != nil || stored?.hasUnconfirmedItems(of: place) ?? false
      guard let stored, hadFacts else {
        if snapshots[1].exists { try transaction.delete(reference) }
        return 0
      }
      let reading = ProfileReading(place, key, pair, version: "")
      let isGone = !snapshots[0].exists
      return try await fold(reading, former, over: stored, transaction, keeping: !isGone).removed
    }
  }

  /// Composes a profile with one message's new reading, and writes the differences.
  ///
  /// The reading is also written, or deleted if it is not to be kept or has no content.
  private func fold(
    _ reading: ProfileReading,
    _ former: ProfileReading?,
    over stored: ClientProfile?,
    _ transaction: Transaction,
    keeping isKept: Bool = true
  ) async throws -> ProfileChange {
    let pair = reading.pair
    var others: [ProfileReading] = []
    if stored != nil {
      let latest = pair.readings(in: firestore).query
        .order(by: "factsAt", descending: true).limit(Self.readingsMax)
      others = try await transaction.get(latest).compactMap { Self.reading($0) }
        .filter { $0.id != reading.id }
    }
    let before =
      stored ?? ClientProfile(clientId: pair.clientID, trainerId: pair.trainerID)
    let fold = ProfileFold(before, reading: reading, former: former, others: others)
    try write(fold.profile, over: stored, at: pair.profile(in: firestore), transaction)
    for other in fold.changed {
      try transaction.set(pair.reading(other.id, in: firestore), other)
    }
    let reference = pair.reading(reading.id, in: firestore)
    let hasContent = !fold.reading.version.isEmpty || fold.reading.removedFacts?.isEmpty == false
    if isKept, hasContent {
      try transaction.set(reference, fold.reading)
    } else if former != nil {
      try transaction.delete(reference)
    }
    return ProfileChange(from: before, to: fold.profile)
  }

  /// Writes only the changed fields, and nothing if the profile is unchanged.
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
      fields[category.rawValue] = profile.stored(category)
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

/// The numbers of items by which a profile differs from its earlier version.
private struct ProfileChange: Sendable {
  var added = 0
  var refreshed = 0
  var removed = 0

  init() {}

  init(from before: ClientProfile, to after: ClientProfile) {
    let old = Dictionary(before.items.map { ($0.id, $0) }) { first, _ in first }
    let new = Dictionary(after.items.map { ($0.id, $0) }) { first, _ in first }
    added = new.keys.count { old[$0] == nil }
    removed = old.keys.count { new[$0] == nil }
    refreshed = new.count { id, item in old[id].map { $0.timestamp < item.timestamp } ?? false }
  }
}

extension Result<Message, SkipError> {
  /// The version of a message that has content; nil for a failure.
  fileprivate var version: String? { (try? get())?.version }

  fileprivate var failure: SkipError? {
    if case .failure(let reason) = self { reason } else { nil }
  }
}

extension ProfileReading {
  fileprivate init(_ source: ProfileSource, _ key: String, version: String) {
    self.init(source.place, key, source.pair, version: version)
  }

  fileprivate init(
    _ place: MessagePlace,
    _ key: String,
    _ pair: ProfilePair,
    version: String
  ) {
    self.init(
      id: key,
      trainerId: pair.trainerID,
      clientId: pair.clientID,
      chatId: place.chatID,
      messageId: place.messageID,
      version: version
    )
  }

  /// Returns true if this version has been read, or if this model refused to read it.
  func covers(_ version: String, by model: String?) -> Bool {
    self.version == version && (problem == nil || self.model == model)
  }

  /// Returns true if another version was read than the message has now.
  fileprivate func isOutdated(by version: String?) -> Bool {
    !self.version.isEmpty && self.version != version
  }
}

extension BackendServices {
  /// The extractor that keeps clients' profiles up to date with their messages.
  public var profiles: ProfileExtractor {
    ProfileExtractor(firestore: firestore, model: chat, documents: documents)
  }
}
