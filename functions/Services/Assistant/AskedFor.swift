/// Whether a question itself asks for an action, without regard to what a model makes of it.
///
/// A model that reads others' words may do what they say. So an action is carried out at once only
/// if the question has a word for that kind of action and shares a word of content with it; any
/// other is proposed.
struct AskedFor: Sendable {
  private let words: Set<String>

  init(_ question: String) {
    words = QueryWords.all(in: question)
  }

  /// Whether the question asks for this kind of action, about what these texts are about.
  func has(_ kind: Kind, about texts: [String]) -> Bool {
    let isAsked = words.contains { word in kind.stems.contains { word.hasPrefix($0) } }
    let content = texts.reduce(into: Set<String>()) { $0.formUnion(QueryWords.all(in: $1)) }
    return isAsked && !content.subtracting(LexicalEmbedding.frequentWords).isDisjoint(with: words)
  }

  /// What one can ask for, with the beginnings of the words that do.
  ///
  /// They are English, German, Spanish and French. A question in another language is answered with proposals.
  enum Kind: Sendable {
    case call, message, reminder

    fileprivate var stems: [String] {
      switch self {
      case .call:
        [
          "schedul", "book", "plan", "arrange", "set", "put", "calendar", "appointment", "meeting",
          "call", "termin", "verabred", "trag", "anruf", "agend", "program", "llamada", "cita",
          "appel", "rendez", "fixe",
        ]
      case .message:
        [
          "send", "write", "tell", "message", "text", "repl", "answer", "ask", "say", "schreib",
          "schick", "sag", "antwort", "frag", "escrib", "envía", "envia", "dile", "respond",
          "écri", "ecri", "envoi", "dis", "répond", "repond", "demand",
        ]
      case .reminder:
        [
          "remind", "remember", "forget", "reminder", "note", "erinner", "merk", "vergess",
          "notier",
          "recuérd", "recuerd", "record", "olvid", "rappel", "oubli", "note",
        ]
      }
    }
  }
}
