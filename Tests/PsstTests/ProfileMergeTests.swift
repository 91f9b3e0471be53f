import FirestoreClient
import PsstModels
import TestSupport
import Testing

@testable import PsstServices

@Suite("Merging facts into a profile")
struct ProfileMergeTests {
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
    var merge = ProfileMerge(Self.empty)
    merge.add([Self.fact("Sore knee", in: "m1", at: 1)], times: [:])
    #expect(merge.profile.injuries == [Self.fact("Sore knee", in: "m1", at: 1)])
    #expect(merge.profile.totalItems == 1)
    #expect((merge.added, merge.refreshed) == (1, 0))
  }

  @Test("A known fact keeps its words and its message, and becomes younger")
  func known() {
    var merge = ProfileMerge(Self.empty)
    merge.add([Self.fact("Sore left knee after squats", in: "m1", at: 1)], times: [:])
    merge.add([Self.fact("sore knee after squats", in: "m2", at: 2)], times: [:])
    var expected = Self.fact("Sore left knee after squats", in: "m1", at: 1)
    expected.timestamp = Timestamp(microseconds: 2)
    #expect(merge.profile.injuries == [expected])
    #expect(merge.profile.totalItems == 1)
    #expect((merge.added, merge.refreshed) == (1, 1))
  }

  @Test("The same words in two categories are two facts")
  func categories() {
    var merge = ProfileMerge(Self.empty)
    let travel = Self.fact("Back", in: "m1", at: 1, category: .travel)
    merge.add([Self.fact("Back", in: "m1", at: 1), travel], times: [:])
    #expect(merge.profile.injuries.count == 1)
    #expect(merge.profile.travel == [travel])
    #expect(merge.profile.totalItems == 2)
  }

  @Test("A message that comes late has said it first, and makes nothing older")
  func late() {
    var merge = ProfileMerge(Self.empty)
    merge.add([Self.fact("sore knee after squats", in: "m2", at: 2)], times: [:])
    let late = Self.fact("Sore left knee after squats", in: "m1", at: 1)
    #expect(merge.messagesInQuestion(for: [late]) == [Self.place("m2")])

    merge.add([late], times: [Self.place("m2"): Timestamp(microseconds: 2)])
    var expected = late
    expected.timestamp = Timestamp(microseconds: 2)
    #expect(merge.profile.injuries == [expected])
    #expect(merge.profile.totalItems == 1)
  }

  @Test("A message whose time is not known stays the first")
  func unknownSource() {
    var merge = ProfileMerge(Self.empty)
    let kept = Self.fact("Sore knee", in: "gone", at: 2)
    merge.add([kept], times: [:])
    merge.add([Self.fact("sore knee", in: "m1", at: 1)], times: [:])
    #expect(merge.profile.injuries == [kept])
  }

  @Test("Of one moment the message with the smaller id has said it first")
  func sameMoment() {
    let times = [
      Self.place("m1"): Timestamp(microseconds: 1), Self.place("m2"): Timestamp(microseconds: 1),
    ]
    for order in [["m1", "m2"], ["m2", "m1"]] {
      var merge = ProfileMerge(Self.empty)
      for id in order { merge.add([Self.fact("Sore knee", in: id, at: 1)], times: times) }
      #expect(merge.profile.injuries.map(\.sourceMessageId) == ["m1"], "\(order)")
    }
  }

  @Test("Only the newest of a category are kept, and the count is of those")
  func bound() {
    var merge = ProfileMerge(Self.empty)
    let count = ProfileMerge.itemsPerCategoryMax
    for number in (1...count + 2).reversed() {
      merge.add([Self.fact("Fact \(number)", in: "m\(number)", at: Int64(number))], times: [:])
    }
    #expect(merge.profile.injuries.map(\.text) == (3...count + 2).map { "Fact \($0)" })
    #expect(merge.profile.totalItems == count)
  }

  @Test("A count that was wrong is right afterwards")
  func wrongCount() {
    var profile = Self.empty
    profile.goals = [Self.fact("Lose weight", in: "m0", at: 0, category: .goals)]
    profile.totalItems = 7
    var merge = ProfileMerge(profile)
    merge.add([Self.fact("Sore knee", in: "m1", at: 1)], times: [:])
    #expect(merge.profile.totalItems == 2)
  }

  @Test("Messages in any order, each any number of times, leave the same profile")
  func anyOrder() {
    var random = SeededGenerator.forTest()
    for _ in 0..<200 {
      // Facts of different subjects share no word; those of one share at least four in five.
      let messages = (0..<12).map { number in
        (0..<Int.random(in: 0...2, using: &random)).map { _ in
          let subject = Int.random(in: 0..<4, using: &random)
          let words =
            (0..<5).map { "w\(subject)x\($0)" } + (Bool.random(using: &random) ? ["e"] : [])
          let time = Int64(number / 2)
          let category = ProfileCategory.allCases[subject % 2]
          return Self.fact(
            words.joined(separator: " "),
            in: "m\(number)",
            at: time,
            category: category
          )
        }
      }
      let times = Dictionary(
        uniqueKeysWithValues: (0..<12).map {
          (Self.place("m\($0)"), Timestamp(microseconds: Int64($0 / 2)))
        }
      )
      // Times come only for the messages that are asked for, as from the database.
      func profile(_ order: [[ProfileItem]]) -> ClientProfile {
        var merge = ProfileMerge(Self.empty)
        for facts in order {
          let asked = merge.messagesInQuestion(for: facts)
          merge.add(facts, times: times.filter { asked.contains($0.key) })
        }
        return merge.profile
      }
      let expected = profile(messages)
      #expect(profile((messages + messages.prefix(5)).shuffled(using: &random)) == expected)
    }
  }

  // MARK: What is merged

  private static let empty = ClientProfile(clientId: "carl", trainerId: "tina")

  private static func place(_ id: String) -> ProfileMerge.MessagePlace {
    ProfileMerge.MessagePlace(chatID: "c1", messageID: id)
  }

  private static func fact(
    _ text: String,
    in message: String,
    at time: Int64,
    category: ProfileCategory = .injuries
  ) -> ProfileItem {
    ProfileItem(
      id: "\(message) \(text)",
      text: text,
      category: category,
      confidence: .high,
      timestamp: Timestamp(microseconds: time),
      sourceMessageId: message,
      sourceChatId: "c1"
    )
  }
}
