import FirestoreClient
import PsstModels

/// A profile to which messages add facts; it knows nothing of databases and models.
///
/// A known fact is only refreshed. Of several messages with the same fact the earliest counts as
/// its source, even if it comes last, so that their order does not matter in the end.
struct ProfileMerge: Sendable {
  private(set) var profile: ClientProfile
  /// Facts that are new.
  private(set) var added = 0
  /// Known facts that became younger, or turned out to have been said earlier.
  private(set) var refreshed = 0

  /// The items kept per category, newest first: trainers read no more, and documents are bounded.
  static let itemsPerCategoryMax = 50

  init(_ profile: ClientProfile) {
    self.profile = profile
  }

  /// The place of a message.
  struct MessagePlace: Hashable, Sendable {
    var chatID: String
    var messageID: String
  }

  /// Whether a message has been read for this profile.
  func hasItems(of place: MessagePlace) -> Bool {
    ProfileCategory.allCases.contains { category in
      profile[category].contains { $0.place == place }
    }
  }

  /// The messages that may be the first to say one of these facts; their times decide.
  func messagesInQuestion(for facts: [ProfileItem]) -> Set<MessagePlace> {
    Set(
      facts.flatMap { fact in
        same(as: fact).map { profile[fact.category][$0] }
          // An item has the time of its last message, so it was said before any later fact.
          .filter { $0.timestamp >= fact.timestamp && $0.place != fact.place }
          .map(\.place)
      }
    )
  }

  /// Adds the facts of one message; `times` has the times of those messages that still exist.
  mutating func add(_ facts: [ProfileItem], times: [MessagePlace: Timestamp]) {
    for fact in facts { add(fact, times) }
    for category in Set(facts.map(\.category)) {
      profile[category] = Self.newest(profile[category])
    }
    profile.totalItems = ProfileCategory.allCases.reduce(0) { $0 + profile[$1].count }
  }

  private mutating func add(_ fact: ProfileItem, _ times: [MessagePlace: Timestamp]) {
    let known = same(as: fact)
    guard !known.isEmpty else {
      profile[fact.category].append(fact)
      added += 1
      return
    }
    // The most similar item comes first in `known`.
    if let first = known.first(where: { !isLater(profile[fact.category][$0], than: fact, times) }) {
      guard profile[fact.category][first].timestamp < fact.timestamp else { return }
      profile[fact.category][first].timestamp = fact.timestamp
    } else {
      // The message comes late: had it come in time, none of these items would exist.
      var first = fact
      for index in known {
        first.timestamp = max(first.timestamp, profile[fact.category][index].timestamp)
      }
      for index in known.sorted(by: >) { profile[fact.category].remove(at: index) }
      profile[fact.category].append(first)
    }
    refreshed += 1
  }

  /// The indices of items that say the same as a fact, the most similar first.
  private func same(as fact: ProfileItem) -> [Int] {
    let words = FactWords(fact.text)
    let items = profile[fact.category]
    return items.indices
      .map { (index: $0, similarity: FactWords(items[$0].text).similarity(to: words)) }
      .filter { $0.similarity >= FactWords.sameFrom }
      .sorted {
        ($1.similarity, items[$0.index].id) < ($0.similarity, items[$1.index].id)
      }
      .map(\.index)
  }

  /// Whether an item's message came after a fact's; unknown for a message that is gone.
  private func isLater(
    _ item: ProfileItem,
    than fact: ProfileItem,
    _ times: [MessagePlace: Timestamp]
  ) -> Bool {
    guard item.place != fact.place, let time = times[item.place] else { return false }
    return (time, item.sourceChatId, item.sourceMessageId)
      > (fact.timestamp, fact.sourceChatId, fact.sourceMessageId)
  }

  private static func newest(_ items: [ProfileItem]) -> [ProfileItem] {
    items.sorted { ($0.timestamp, $0.id) < ($1.timestamp, $1.id) }.suffix(itemsPerCategoryMax)
  }
}

extension ProfileItem {
  /// The message that said the fact first.
  var place: ProfileMerge.MessagePlace {
    ProfileMerge.MessagePlace(chatID: sourceChatId, messageID: sourceMessageId)
  }
}
