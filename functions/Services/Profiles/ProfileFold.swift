import FirestoreClient
import PsstModels

/// A profile put together from what its messages said; it knows nothing of databases and models.
///
/// The result follows from the readings alone, and from what the trainer did: the same messages
/// make the same profile, in whatever order and however often their events came. The first message
/// to state a fact is its source, and later ones only make it younger.
struct ProfileFold: Sendable {
  /// The profile as it is stored.
  let stored: ClientProfile
  /// What the latest messages with facts said, with the new reading of `place` if it has facts.
  let readings: [ProfileReading]
  /// The message that was read, edited or deleted.
  let place: MessagePlace

  /// The items kept per category: trainers read no more, and documents are bounded.
  static let itemsPerCategoryMax = 50

  /// The new profile.
  ///
  /// Items that the trainer confirmed stay, and so do those of messages that are not among the
  /// readings, such as the trainer's own. What the trainer removed stays away until another message
  /// states it. Of too many items in a category the oldest of the least confidence go, never a
  /// confirmed one.
  func profile() -> ClientProfile {
    let places = Set(readings.map(\.place))
    func stays(_ item: ProfileItem) -> Bool {
      item.confirmed == true || item.place != place && !places.contains(item.place)
    }
    var lists: [ProfileCategory: FactList] = [:]
    var dropped: [ProfileCategory: FactList] = [:]
    for category in ProfileCategory.allCases {
      let items = stored[category]
      lists[category] = FactList(items.filter(stays))
      dropped[category] = FactList(items.filter { !stays($0) && $0.place == place })
    }
    let known = Dictionary(stored.items.map { ($0.id, $0) }) { first, _ in first }
    let kept = Set(stored.items.filter(stays).map(\.id))
    let removed = Set(stored.removedItemIds)
    for var fact in facts where !removed.contains(fact.id) {
      if let item = known[fact.id] {
        // The trainer may have put the fact into other words, or into another category.
        (fact.text, fact.category, fact.confidence) = (item.text, item.category, item.confidence)
      } else if fact.place != place, dropped[fact.category]?.similar(to: fact) == nil {
        // The profile had it from another message, or the trainer has removed it since.
        lists[fact.category]?.refresh(by: fact)
        continue
      }
      if lists[fact.category]?.refresh(by: fact) ?? false || kept.contains(fact.id) { continue }
      lists[fact.category]?.append(fact)
    }
    var profile = stored
    for (category, list) in lists { profile[category] = Self.bounded(list.items) }
    profile.totalItems = profile.itemsCount
    return profile
  }

  /// The facts of all readings, the earliest message's first.
  private var facts: [ProfileItem] {
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

/// Items of one category with their words.
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

  /// The index of the item most similar to a fact; nil when no item states the same.
  func similar(to fact: ProfileItem) -> Int? {
    let factWords = FactWords(fact.text)
    return items.indices
      .map { (index: $0, similarity: words[$0].similarity(to: factWords)) }
      .filter { $0.similarity >= FactWords.sameFrom }
      .min { ($1.similarity, items[$0.index].id) < ($0.similarity, items[$1.index].id) }?
      .index
  }

  /// Makes the item that states the same as young as a fact; false when there is none.
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

  /// Whether the profile has items of a message that its trainer has not confirmed.
  func hasUnconfirmedItems(of place: MessagePlace) -> Bool {
    items.contains { $0.place == place && $0.confirmed != true }
  }
}

extension ProfileReading {
  /// The message that was read.
  var place: MessagePlace { MessagePlace(chatID: chatId, messageID: messageId) }

  /// The pair whose profile has the facts.
  var pair: ProfilePair { ProfilePair(trainerID: trainerId, clientID: clientId) }
}

extension ProfileItem {
  /// The message that stated the fact first.
  var place: MessagePlace { MessagePlace(chatID: sourceChatId, messageID: sourceMessageId) }
}
