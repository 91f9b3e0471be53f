/// The messages that an answer can be based on, with their citation numbers.
///
/// A message keeps its number for the whole question, however often it is found.
struct AssistantSources: Sendable, Hashable {
  /// All messages, in the order of their numbers.
  private(set) var all: [Assistant.Source] = []
  private var numbers: [MessagePlace: Int] = [:]

  /// Adds messages with new numbers; known messages keep their number.
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

  /// Returns the messages that a text cites, as in `[2]`, or all messages if it cites none.
  func cited(in text: String) -> [Assistant.Source] {
    let numbers = Set(text.matches(of: Self.citation).flatMap { Self.numbers($0.output.1) })
    let cited = all.filter { numbers.contains($0.number) }
    return cited.isEmpty ? all : cited
  }

  /// Returns a text without the citations of messages that nobody found.
  func withoutUnknown(in text: String) -> String {
    text.replacing(Self.citation) { match -> String in
      let numbers = Self.numbers(match.output.1)
      let known = numbers.filter { (1..<all.count + 1).contains($0) }
      guard known.count < numbers.count else { return String(match.output.0) }
      let space = match.output.0.hasPrefix(" ") ? " " : ""
      return known.isEmpty ? "" : "\(space)[\(known.map(String.init).joined(separator: ", "))]"
    }
  }

  /// The numbers of one or more messages in brackets, as in `[2]` and `[1, 3]`.
  private static var citation: Regex<(Substring, Substring)> {
    #/ ?\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]/#
  }

  private static func numbers(_ citation: Substring) -> [Int] {
    citation.split { !$0.isNumber }.compactMap { Int($0) }
  }
}
