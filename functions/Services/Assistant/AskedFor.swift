/// Whether a question itself asks for an action, without regard to what a model makes of it.
///
/// A model that reads others' words may do what they say. So an action is carried out at once only
/// if the words of the question are a request for that kind of action, and the action is about what
/// they are about; any other is proposed.
struct AskedFor: Sendable {
  private let words: Set<String>
  private let isRequest: Bool

  /// Reads a question; one that wants to know something requests nothing.
  init(_ question: String) {
    words = QueryWords.all(in: question)
    let first = question.lowercased().split { !$0.isLetter }.first.map(String.init) ?? ""
    isRequest =
      !question.contains { $0 == "?" || $0 == "？" } && !Self.interrogatives.contains(first)
  }

  /// Whether the question requests this kind of action, with at least so many of the words of
  /// content that the action has, from 0 to 1.
  func requests(_ kind: Kind, with text: String, share: Double) -> Bool {
    let content = QueryWords.all(in: text).subtracting(LexicalEmbedding.frequentWords)
    guard isRequest, !content.isEmpty,
      words.contains(where: { word in kind.stems.contains { word.hasPrefix($0) } })
    else { return false }
    return Double(content.intersection(words).count) >= share * Double(content.count)
  }

  private static let interrogatives: Set<String> = [
    "who", "whom", "whose", "which", "what", "when", "where", "why", "how", "did", "does", "do",
    "has", "have", "is", "are", "was", "were", "wer", "wen", "wem", "welche", "welcher", "was",
    "wann", "wo", "warum", "wie", "hat", "ist", "sind", "qué", "quién", "cuándo", "dónde", "cómo",
    "qui", "quoi", "quand", "où", "comment", "pourquoi",
  ]

  /// What one can request, with the beginnings of the words that do.
  ///
  /// They are English, German, Spanish and French. A request in another language is answered with
  /// proposals.
  enum Kind: Sendable {
    case call, message, reminder

    fileprivate var stems: [String] {
      switch self {
      case .call:
        [
          "schedul", "arrange", "appointment", "meeting", "call", "termin", "verabred", "anruf",
          "agenda", "llamada", "cita", "rendez",
        ]
      case .message:
        [
          "send", "write", "tell", "message", "repl", "schreib", "schick", "sag", "antwort",
          "escrib", "envía", "envia", "dile", "écri", "ecri", "envoi", "répond", "repond",
        ]
      case .reminder: ["remind", "erinner", "recuérd", "recuerd", "rappel"]
      }
    }
  }
}
