import FirestoreClient
import PsstModels

/// A profile composed from the readings of its messages, without database or model.
///
/// The result depends only on the readings and the trainer's edits. The same messages therefore
/// make the same profile, regardless of the order and the repetition of their events. The first
/// message that states a fact is its source, and later ones only update its time.
struct ProfileFold: Sendable {
  /// The maximum number of items per category.
  ///
  /// Trainers read no more, and the size of documents is limited.
  static let itemsPerCategoryMax = 50

  private(set) var profile: ClientProfile
  /// The new reading of the message that was read, edited or deleted.
  private(set) var reading: ProfileReading
  /// The other readings that must be written, because facts in them were removed.
  private(set) var changed: [ProfileReading] = []

  /// Composes a profile after one message was read, edited or deleted.
  ///
  /// `reading` is the current reading of that message, `former` its earlier reading, and `others`
  /// are the readings of the latest other messages with facts.
  ///
  /// Items that the trainer confirmed stay, and so do items that come from no reading, such as the
  /// trainer's own. A fact that the trainer removed stays out, whichever message stated it before,
  /// until another message states it. If a category has too many items, the oldest of those with
  /// the least confidence are removed, but never a confirmed item.
  init(
    _ stored: ClientProfile,
    reading: ProfileReading,
    former: ProfileReading? = nil,
    others: [ProfileReading]
  ) {
    profile = stored
    self.reading = reading
    let removal = Removal(stored, of: others + [former].compactMap(\.self))
    self.reading.removedFacts = former.flatMap { removal.applied(to: $0).removedFacts }
    self.reading.dropRemoved { removal.ids.contains($0.id) }
    var live = [self.reading]
    for other in others {
      let applied = removal.applied(to: other)
      live.append(applied)
      if applied != other { changed.append(applied) }
    }
    fold(stored, live)
  }

  private mutating func fold(_ stored: ClientProfile, _ readings: [ProfileReading]) {
    let place = reading.place
    let factIDs = Set(readings.flatMap { $0.facts.map(\.id) })
    func stays(_ item: ProfileItem) -> Bool {
      item.confirmed == true || item.place != place && !factIDs.contains(item.id)
    }
    let known = Dictionary(stored.items.map { ($0.id, $0) }) { first, _ in first }
    let kept = Set(stored.items.filter(stays).map(\.id))
    var lists = ProfileCategory.allCases.reduce(into: [:]) { lists, category in
      lists[category] = FactList(stored[category].filter(stays))
    }
    for var fact in Self.facts(of: readings) {
      if let item = known[fact.id] {
        // The trainer may have changed the wording or the category of the fact.
        (fact.text, fact.category, fact.confidence) = (item.text, item.category, item.confidence)
      }
      if lists[fact.category]?.refresh(by: fact) ?? false || kept.contains(fact.id) { continue }
      lists[fact.category]?.append(fact)
    }
    for (category, list) in lists { profile[category] = Self.bounded(list.items) }
    profile.totalItems = profile.itemsCount
  }

  /// Returns the facts of all readings, those of the earliest message first.
  private static func facts(of readings: [ProfileReading]) -> [ProfileItem] {
    readings.flatMap { reading in reading.facts.enumerated().map { (fact: $1, index: $0) } }
      .sorted { left, right in
        (left.fact.timestamp, left.fact.sourceChatId, left.fact.sourceMessageId, left.index)
          < (right.fact.timestamp, right.fact.sourceChatId, right.fact.sourceMessageId, right.index)
      }
      .map(\.fact)
  }

  private static func bounded(_ items: [ProfileItem]) -> [ProfileItem] {
    let leastFirst = items.filter { $0.confirmed != true }.sorted { left, right in
      if left.confidence != right.confidence {
        return left.confidence.isLess(than: right.confidence)
      }
      return (left.timestamp, left.id) < (right.timestamp, right.id)
    }
    let evicted = Set(leastFirst.prefix(max(0, items.count - itemsPerCategoryMax)).map(\.id))
    return items.filter { $0.confirmed == true || !evicted.contains($0.id) }
      .sorted { ($0.timestamp, $0.id) < ($1.timestamp, $1.id) }
  }
}

/// The facts that the trainer has removed from a profile, as found in the readings.
private struct Removal {
  /// The ids of the removed items.
  let ids: Set<String>
  private let stored: ClientProfile
  private let storedIDs: Set<String>
  private var removed: [ProfileCategory: FactList] = [:]
  private var present: [ProfileCategory: FactList]

  init(_ stored: ClientProfile, of readings: [ProfileReading]) {
    let ids = Set(stored.removedItemIds)
    self.ids = ids
    self.stored = stored
    storedIDs = Set(stored.items.map(\.id))
    present = ProfileCategory.allCases.reduce(into: [:]) { $0[$1] = FactList(stored[$1]) }
    for reading in readings {
      for fact in (reading.removedFacts ?? []) + reading.facts.filter({ ids.contains($0.id) }) {
        removed[fact.category, default: FactList([])].append(fact)
      }
    }
  }

  /// Returns an earlier reading without the removed facts.
  ///
  /// A fact that states the same as a removed one is removed too, unless the profile contains it:
  /// then it was stated after the removal.
  func applied(to reading: ProfileReading) -> ProfileReading {
    var reading = reading
    reading.dropRemoved { fact in
      if ids.contains(fact.id) { return true }
      return removed[fact.category]?.similar(to: fact) != nil && !storedIDs.contains(fact.id)
        && present[fact.category]?.similar(to: fact) == nil
    }
    return reading
  }
}

extension ProfileReading {
  /// Removes facts that match the predicate or repeat a removed fact of this message.
  fileprivate mutating func dropRemoved(where isRemoved: (ProfileItem) -> Bool) {
    let former = FactList(removedFacts ?? [])
    let dropped = facts.filter { fact in
      isRemoved(fact)
        || former.similar(to: fact).map { former.items[$0].category == fact.category } ?? false
    }
    guard !dropped.isEmpty else { return }
    let ids = Set(dropped.map(\.id))
    facts.removeAll { ids.contains($0.id) }
    removedFacts = (removedFacts ?? []).filter { !ids.contains($0.id) } + dropped
  }
}

/// The items of one category with their words.
private struct FactList {
  private(set) var items: [ProfileItem]
  private var words: [FactWords]

  init(_ items: [ProfileItem]) {
    self.items = items
    words = items.map { FactWords($0.text) }
  }

  mutating func append(_ item: ProfileItem) {
    items.append(item)
    words.append(FactWords(item.text))
  }

  /// Returns the index of the item most similar to a fact; nil if no item states the same.
  func similar(to fact: ProfileItem) -> Int? {
    let factWords = FactWords(fact.text)
    return items.indices
      .map { (index: $0, similarity: words[$0].similarity(to: factWords)) }
      .filter { $0.similarity >= FactWords.sameFrom }
      .min { ($1.similarity, items[$0.index].id) < ($0.similarity, items[$1.index].id) }?
      .index
  }

  /// Updates the time of the item that states the same fact; returns false if there is none.
  @discardableResult
  mutating func refresh(by fact: ProfileItem) -> Bool {
    guard let index = similar(to: fact) else { return false }
    items[index].timestamp = max(items[index].timestamp, fact.timestamp)
    return true
  }
}

extension ClientProfile {
  /// The items of all categories.
  var items: [ProfileItem] { ProfileCategory.allCases.flatMap { self[$0] } }

  /// Returns true if the profile has items of a message that its trainer has not confirmed.
  func hasUnconfirmedItems(of place: MessagePlace) -> Bool {
    items.contains { $0.place == place && $0.confirmed != true }
  }
}

extension ProfileReading {
  /// The location of the message that was read.
  var place: MessagePlace { MessagePlace(chatID: chatId, messageID: messageId) }

  /// The pair in whose profile the facts are.
  var pair: ProfilePair { ProfilePair(trainerID: trainerId, clientID: clientId) }
}

extension ProfileItem {
  /// The location of the message that stated the fact first.
  var place: MessagePlace { MessagePlace(chatID: sourceChatId, messageID: sourceMessageId) }
}
