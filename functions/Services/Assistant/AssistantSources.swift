/// The messages that an answer can rest on, each with the number by which the answer cites it.
///
/// A message keeps its number for the whole question, however often it is found.
struct AssistantSources: Sendable, Hashable {
  /// All messages, in the order of their numbers.
  private(set) var all: [Assistant.Source] = []
  private var numbers: [MessagePlace: Int] = [:]

  /// Numbers messages; those that are known keep their number.
  mutating func add(_ hits: [MessageSearch.Hit]) -> [Assistant.Source] {
    hits.map { hit in
      let place = MessagePlace(chatID: hit.chatID, messageID: hit.messageID)
      if let number = numbers[place] { return all[number - 1] }
      let source = Assistant.Source(number: all.count + 1, hit: hit)
      numbers[place] = source.number
      all.append(source)
      return source
    }
  }

  /// The messages that a text cites, as in `[2]`; all where it cites none.
  func cited(in text: String) -> [Assistant.Source] {
    let numbers = Set(text.matches(of: #/\[(\d{1,3})\]/#).compactMap { Int($0.output.1) })
    let cited = all.filter { numbers.contains($0.number) }
    return cited.isEmpty ? all : cited
  }
}
