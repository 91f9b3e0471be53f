import FirestoreClient
import PsstModels
import TestSupport
import Testing

@testable import PsstBackend
@testable import PsstServices

@Suite("A profile from what its messages said")
struct ProfileFoldTests {
  @Test(
    "Facts are one from four words in five on, whatever their case and signs",
    arguments: [
      ("Left knee hurts", "left KNEE, hurts!", true),
      ("Doesn't like running", "doesnt like running", true),
      ("Has a bad lower back", "Has a bad lower", true),
      ("Has a bad back", "Has a bad", false),
      ("Trains at home", "Wants to lose weight", false),
      ("Knie schmerzt beim Beugen", "Knie schmerzt beim beugen", true),
      ("Café 早上 training", "cafe\u{301} 早上 Training", true),
    ]
  )
  func sameness(left: String, right: String, isSame: Bool) {
    let similarity = FactWords(left).similarity(to: FactWords(right))
    #expect((similarity >= FactWords.sameFrom) == isSame)
    #expect(FactWords(right).similarity(to: FactWords(left)) == similarity)
  }

  @Test("A new fact is added, with its message")
  func new() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    #expect(pair.profile.injuries == [Self.fact("Sore knee", in: "m1", at: 1)])
    #expect(pair.profile.totalItems == 1)
  }

  @Test("A known fact keeps its words and its message, and becomes younger")
  func known() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore left knee after squats", in: "m1", at: 1)])
    pair.read("m2", [Self.fact("sore knee after squats", in: "m2", at: 2)])
    #expect(
      pair.profile.injuries == [Self.fact("Sore left knee after squats", in: "m1", at: 1, until: 2)]
    )
    #expect(pair.profile.totalItems == 1)
  }

  @Test("The same words in two categories are two facts")
  func categories() {
    var pair = Pair()
    let travel = Self.fact("Back", in: "m1", at: 1, category: .travel)
    pair.read("m1", [Self.fact("Back", in: "m1", at: 1), travel])
    #expect(pair.profile.injuries.count == 1)
    #expect(pair.profile.travel == [travel])
    #expect(pair.profile.totalItems == 2)
  }

  @Test("A message that comes late has said it first, and makes nothing older")
  func late() {
    var pair = Pair()
    pair.read("m2", [Self.fact("sore knee after squats", in: "m2", at: 2)])
    pair.read("m1", [Self.fact("Sore left knee after squats", in: "m1", at: 1)])
    #expect(
      pair.profile.injuries == [Self.fact("Sore left knee after squats", in: "m1", at: 1, until: 2)]
    )
  }

  @Test("An item of no reading stays the first, and becomes younger")
  func unknownSource() {
    var pair = Pair()
    pair.profile.injuries = [Self.fact("Sore knee", in: "gone", at: 2)]
    pair.read("m1", [Self.fact("sore knee", in: "m1", at: 1)])
    pair.read("m3", [Self.fact("sore knee", in: "m3", at: 3)])
    #expect(pair.profile.injuries == [Self.fact("Sore knee", in: "gone", at: 2, until: 3)])
  }

  @Test("A count that was wrong is right afterwards")
  func wrongCount() {
    var pair = Pair()
    pair.profile.goals = [Self.fact("Lose weight", in: "m0", at: 0, category: .goals)]
    pair.profile.totalItems = 7
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    #expect(pair.profile.totalItems == 2)
  }

  // MARK: Edits and deletions

  @Test("A message that says something else takes its facts along")
  func edited() {
    var pair = Pair()
    pair.read(
      "m1",
      [Self.fact("Sore knee", in: "m1", at: 1), Self.fact("Old back", in: "m1", at: 1)]
    )
    pair.read(
      "m1",
      [Self.fact("Sore elbow", in: "m1", at: 1), Self.fact("Old back", in: "m1", at: 1)]
    )
    #expect(Set(pair.profile.injuries.map(\.text)) == ["Sore elbow", "Old back"])
    #expect(pair.profile.totalItems == 2)
  }

  @Test("What another message states too stays, as that message's")
  func statedTwice() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore left knee after squats", in: "m1", at: 1)])
    pair.read("m2", [Self.fact("sore knee after squats", in: "m2", at: 2)])
    pair.read("m1", [])
    #expect(pair.profile.injuries == [Self.fact("sore knee after squats", in: "m2", at: 2)])
  }

  @Test("A fact is as old again as the last message that still states it")
  func olderAgain() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    pair.read("m2", [Self.fact("sore knee", in: "m2", at: 2)])
    pair.read("m2", [])
    #expect(pair.profile.injuries == [Self.fact("Sore knee", in: "m1", at: 1)])
  }

  // MARK: Decisions of the trainer

  @Test("What the trainer confirmed stays when its message is edited, deleted or read again")
  func confirmed() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Allergic to nuts", in: "m1", at: 1)])
    pair.profile.injuries[0].confirmed = true
    let confirmed = pair.profile.injuries
    pair.read("m1", [Self.fact("Allergic to nuts", in: "m1", at: 1)])
    #expect(pair.profile.injuries == confirmed)
    pair.read("m1", [])
    #expect(pair.profile.injuries == confirmed)
  }

  @Test("A confirmed fact that an earlier message states too keeps its words and stays confirmed")
  func confirmedLater() {
    var pair = Pair()
    pair.read("m2", [Self.fact("Allergic to all nuts", in: "m2", at: 2)])
    pair.profile.injuries[0].confirmed = true
    pair.read("m1", [Self.fact("allergic to all nuts!", in: "m1", at: 1)])
    pair.read("m3", [Self.fact("Allergic to all nuts", in: "m3", at: 3)])
    #expect(pair.profile.injuries.map(\.sourceMessageId) == ["m2"])
    #expect(pair.profile.injuries.map(\.confirmed) == [true])
    #expect(pair.profile.injuries.map(\.timestamp) == [Timestamp(microseconds: 3)])
  }

  @Test("What the trainer removed does not come back with its message, edited or not")
  func removed() {
    var pair = Pair()
    let facts = [Self.fact("Sore knee", in: "m1", at: 1), Self.fact("Old back", in: "m1", at: 1)]
    pair.read("m1", facts)
    pair.remove("Sore knee")
    pair.read("m1", facts)
    pair.read("m1", [facts[0], Self.fact("Sore elbow", in: "m1", at: 1)])
    #expect(pair.profile.injuries.map(\.text) == ["Sore elbow"])
  }

  @Test("What the trainer removed does not come back with a message that had said it too")
  func removedOfTwo() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    pair.read("m2", [Self.fact("sore knee", in: "m2", at: 2)])
    pair.remove("Sore knee")
    pair.read("m3", [Self.fact("Old back", in: "m3", at: 3)])
    pair.read("m1", [])
    #expect(pair.profile.injuries.map(\.text) == ["Old back"])
  }

  @Test("What the trainer removed does not come back when another old message is edited")
  func removedOfTwoEdited() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    pair.read(
      "m2",
      [Self.fact("sore knee", in: "m2", at: 2), Self.fact("Old back", in: "m2", at: 2)]
    )
    pair.remove("Sore knee")
    // An edit first removes the old facts and then adds the new ones.
    pair.read("m2", [])
    pair.read(
      "m2",
      [Self.fact("Sore knee!", in: "m2", at: 2), Self.fact("Old back", in: "m2", at: 2)]
    )
    #expect(pair.profile.injuries.map(\.text) == ["Old back"])
  }

  @Test("What the trainer removed stays away after its id has left the list")
  func removedLongAgo() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    pair.remove("Sore knee")
    pair.read("m2", [Self.fact("Old back", in: "m2", at: 2)])
    pair.profile.removedItemIds = []
    pair.read("m3", [Self.fact("Stiff neck", in: "m3", at: 3)])
    #expect(pair.profile.injuries.map(\.text) == ["Old back", "Stiff neck"])
  }

  @Test("A fact that an app wrote over, without removing it, comes back")
  func writtenOver() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    let stale = pair.profile.injuries
    pair.read("m2", [Self.fact("Bad hip", in: "m2", at: 2)])
    pair.profile.injuries = stale
    pair.read("m3", [Self.fact("Stiff neck", in: "m3", at: 3)])
    #expect(pair.profile.injuries.map(\.text) == ["Sore knee", "Bad hip", "Stiff neck"])
  }

  @Test("The trainer's own item stays, whichever message it names")
  func ownItem() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    pair.profile.injuries.append(Self.fact("Wears a brace", in: "m1", at: 1))
    pair.read("m2", [Self.fact("Old back", in: "m2", at: 2)])
    #expect(Set(pair.profile.injuries.map(\.text)) == ["Sore knee", "Wears a brace", "Old back"])
  }

  @Test("What the trainer removed is new when a later message states it")
  func statedAgain() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    pair.remove("Sore knee")
    pair.read("m2", [Self.fact("Sore knee", in: "m2", at: 2)])
    pair.read("m3", [Self.fact("Old back", in: "m3", at: 3)])
    #expect(pair.profile.injuries.map(\.sourceMessageId) == ["m2", "m3"])
  }

  @Test("What the trainer put into other words keeps them, in the category that they chose")
  func corrected() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Sore knee", in: "m1", at: 1)])
    var item = pair.profile.injuries.removeFirst()
    item.text = "Torn meniscus on the left"
    item.category = .goals
    pair.profile.goals = [item]
    pair.read("m2", [Self.fact("Old back", in: "m2", at: 2)])
    #expect(pair.profile.goals == [item])
    #expect(pair.profile.injuries.map(\.text) == ["Old back"])
  }

  // MARK: Limits

  @Test("Only the newest of a category are kept, and the count is of those")
  func bound() {
    var pair = Pair()
    let count = ProfileFold.itemsPerCategoryMax
    for number in (1...count + 2).reversed() {
      pair.read("m\(number)", [Self.fact("Fact \(number)", in: "m\(number)", at: Int64(number))])
    }
    #expect(pair.profile.injuries.map(\.text) == (3...count + 2).map { "Fact \($0)" })
    #expect(pair.profile.totalItems == count)
  }

  @Test("The oldest of the least confidence go first, and confirmed ones never")
  func evicted() {
    var pair = Pair()
    pair.read("m1", [Self.fact("Allergic to nuts", in: "m1", at: 1, confidence: .low)])
    pair.profile.injuries[0].confirmed = true
    pair.read("m2", [Self.fact("Old and sure", in: "m2", at: 2)])
    pair.read("m3", [Self.fact("Perhaps", in: "m3", at: 900, confidence: .medium)])
    pair.read("m4", [Self.fact("Hardly", in: "m4", at: 901, confidence: .low)])
    for number in 10..<(10 + ProfileFold.itemsPerCategoryMax - 3) {
      pair.read("m\(number)", [Self.fact("Fact \(number)", in: "m\(number)", at: Int64(number))])
    }
    let texts = Set(pair.profile.injuries.map(\.text))
    #expect(texts.count == ProfileFold.itemsPerCategoryMax)
    #expect(texts.isSuperset(of: ["Allergic to nuts", "Old and sure", "Perhaps"]))
    #expect(!texts.contains("Hardly"))
  }

  @Test("Fifty confirmed facts leave no place for others, and all of them stay")
  func confirmedOnly() {
    var pair = Pair()
    pair.profile.injuries = (1...60).map { number in
      var item = Self.fact("Fact \(number)", in: "m\(number)", at: Int64(number))
      item.confirmed = true
      return item
    }
    pair.read("m99", [Self.fact("One more", in: "m99", at: 99)])
    #expect(pair.profile.injuries.map(\.text) == (1...60).map { "Fact \($0)" })
    #expect(pair.profile.totalItems == 60)
  }

  // MARK: Order

  @Test("Messages read, edited and deleted in any order, and any number of times, leave the same")
  func anyOrder() {
    var random = SeededGenerator.forTest()
    for _ in 0..<200 {
      // Facts on different subjects share no word; facts on one subject share at least four of
      // five.
      func facts(_ number: Int) -> [ProfileItem] {
        (0..<Int.random(in: 0...2, using: &random)).map { _ in
          let subject = Int.random(in: 0..<4, using: &random)
          let words =
            (0..<5).map { "w\(subject)x\($0)" } + (Bool.random(using: &random) ? ["e"] : [])
          return Self.fact(
            words.joined(separator: " "),
            in: "m\(number)",
            at: Int64(number / 2),
            category: ProfileCategory.allCases[subject % 2]
          )
        }
      }
      let first = (0..<12).map(facts)
      // Some messages are edited, and some end without facts.
      let last = first.enumerated().map { index, old in
        Bool.random(using: &random) ? old : Bool.random(using: &random) ? [] : facts(index)
      }
      func profile(_ readings: [(Int, [ProfileItem])]) -> ClientProfile {
        var pair = Pair()
        for (number, facts) in readings { pair.read("m\(number)", facts) }
        return pair.profile
      }
      let orderly = profile(Array(first.enumerated()) + Array(last.enumerated()))
      let faulty =
        Array(first.enumerated()).shuffled(using: &random).prefix(6)
        + (Array(last.enumerated()) + Array(last.enumerated()).prefix(5)).shuffled(using: &random)
      #expect(profile(Array(faulty)) == orderly)
    }
  }

  // MARK: Fixture

  /// A profile and its readings as stored.
  private struct Pair {
    var profile = ClientProfile(clientId: "carl", trainerId: "tina")
    var readings: [String: ProfileReading] = [:]

    mutating func read(_ message: String, _ facts: [ProfileItem]) {
      let former = readings[message]
      let reading = ProfileReading(
        id: "c1#\(message)",
        trainerId: "tina",
        clientId: "carl",
        chatId: "c1",
        messageId: message,
        version: "",
        facts: facts,
        factsAt: facts.first?.timestamp
      )
      let others = readings.values.filter { $0.messageId != message }
      let fold = ProfileFold(profile, reading: reading, former: former, others: Array(others))
      profile = fold.profile
      for changed in fold.changed + [fold.reading] { readings[changed.messageId] = changed }
    }

    /// Deletes a message and its reading.
    mutating func delete(_ message: String) {
      read(message, [])
      readings[message] = nil
    }

    /// Removes an injury as the trainer's app does.
    mutating func remove(_ text: String) {
      let ids = profile.injuries.filter { $0.text == text }.map(\.id)
      profile.injuries.removeAll { ids.contains($0.id) }
      profile.removedItemIds += ids
    }
  }

  private static func fact(
    _ text: String,
    in message: String,
    at time: Int64,
    until last: Int64? = nil,
    category: ProfileCategory = .injuries,
    confidence: ProfileItem.Confidence = .high
  ) -> ProfileItem {
    ProfileItem(
      id: "\(message) \(category.rawValue) \(text)",
      text: text,
      category: category,
      confidence: confidence,
      timestamp: Timestamp(microseconds: last ?? time),
      sourceMessageId: message,
      sourceChatId: "c1"
    )
  }
}
