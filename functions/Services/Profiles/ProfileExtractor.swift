public import FirestoreClient
import PsstModels

/// Keeps clients' profiles in step with what they and their trainers write.
///
/// Acts on the message as it is now: one that changes while the model reads it is read again. What
/// a version of a message said is stored with the profile in one transaction, so that no version is
/// paid for twice, and so that facts go with the message that stated them.
public struct ProfileExtractor: Sendable {
  private let firestore: Firestore
  private let model: (any ChatModel)?
  private let documents: DocumentReader

  /// The most rounds; a message that changes more often meanwhile is left to a later attempt.
  private static let roundsMax = 3
  /// How long one worker alone reads a version of a message; longer than its function may take.
  private static let claimTime: Int64 = 300_000_000
  /// The latest messages with facts of which a profile is put together.
  ///
  /// Facts of earlier ones stay as they are, and only their own message's end removes them.
  private static let readingsMax = 300

  /// An extractor for the profiles of a database; without a model it reads no message.
  public init(firestore: Firestore, model: (any ChatModel)?, documents: DocumentReader) {
    self.firestore = firestore
    self.model = model
    self.documents = documents
  }

  /// What happened to a message.
  public enum Outcome: Sendable, Hashable {
    /// The model has read it.
    case merged(Merged)
    /// The profile has lost what the message no longer says.
    case retracted(removed: Int)
    /// Another worker is reading it.
    case busy
    case skipped(SkipReason)
  }

  /// What a message did to the profile of its client.
  public struct Merged: Sendable, Hashable {
    /// Facts that are new.
    public var added: Int
    /// Facts that were already known.
    public var refreshed: Int
    /// Facts that are not in the profile any more, such as those of the text before an edit.
    public var removed: Int
    /// The model that read the message.
    public var model: String
    /// What the reading cost.
    public var usage: TokenUsage
  }

  /// Brings the profile of a message's client in step with the message.
  ///
  /// The sender pays for the reading. Throws `ServiceError` or `FirestoreError`; repeating the call
  /// later does what is left.
  public func extract(chatID: String, messageID: String) async throws -> Outcome {
    var usage = TokenUsage()
    return try await extract(
      MessagePlace(chatID: chatID, messageID: messageID),
      payer: nil,
      usage: &usage
    )
  }

  /// Does the same at the cost of a payer, the sender unless given, and adds to `usage` what the
  /// model used, also where nothing came of it.
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

  /// A message and what is known of it.
  private struct Seen {
    /// What is to be read, or why nothing is.
    var source: Result<ProfileSource, SkipReason>
    /// The pairs whose profile may have facts that the message does not state any more.
    var outdated: [ProfilePair] = []
  }

  private func see(_ place: MessagePlace, _ key: String) async throws -> Seen {
    let chatReference = firestore.collection(Chat.collection).document(place.chatID)
    let snapshots = try await firestore.getAll([reference(place), chatReference])
    let content = content(snapshots[0])
    // The chat may be gone, or may have other members by now.
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
      // A profile can have items of a message for which there is no reading.
      if content.version == nil, profile?.value?.hasUnconfirmedItems(of: place) ?? false {
        seen.outdated.append(pair)
      }
      // All this is checked again when it counts; here it saves paying a model for nothing.
      let message = try content.get()
      guard chat?.value?.members.contains(message.senderID) ?? false else {
        throw SkipReason.strangerSent
      }
      guard stored[1].exists else { throw SkipReason.noContact }
      if let error = profile?.error { throw SkipReason.profileUnreadable(error) }
      seen.source = .success(
        ProfileSource(
          place: place,
          message: message,
          time: min(message.timestamp, snapshots[0].createTime ?? snapshots[0].readTime),
          pair: pair,
          clientName: people.clientName
        )
      )
    } catch let reason as SkipReason {
      seen.source = .failure(content.failure ?? reason)
    }
    return seen
  }

  /// A message with content for a model, or why it has none.
  func content(_ snapshot: DocumentSnapshot) -> Result<Message, SkipReason> {
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

  /// Takes the right to read a version of a message, so that nobody else pays for the same.
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

  /// Gives a claim back after the model failed; what it refuses to read is not asked of it again.
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
    try? snapshot.data(as: Lenient<ProfileReading>.self).value
  }

  // MARK: Merging

  private enum MergeOutcome: Sendable {
    /// The message has changed since it was read.
    case changed
    case skipped(SkipReason)
    case merged(ProfileChange)
  }

  /// Stores what the model read, and puts the profile together with it.
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

  /// Removes what a message does not state any more; returns the number of facts removed.
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
      // The text may be the earlier one again.
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

  /// Puts a profile together with one message's new reading, and writes what is different.
  ///
  /// Writes the reading, too, or deletes it if it is not to be kept or has nothing to keep.
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

  /// Writes only what is different, so that a reading without news writes nothing.
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

/// How a profile's items differ from what they were.
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

extension Result<Message, SkipReason> {
  /// The version of a message that has content.
  fileprivate var version: String? { (try? get())?.version }

  fileprivate var failure: SkipReason? {
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

  /// Whether this version has been read, or cannot be read by this model.
  func covers(_ version: String, by model: String?) -> Bool {
    self.version == version && (problem == nil || self.model == model)
  }

  /// Whether something was read that the message, of this version now, does not say any more.
  fileprivate func isOutdated(by version: String?) -> Bool {
    !self.version.isEmpty && self.version != version
  }
}
