/// Whether a question itself asks for an action, without regard to what a model makes of it.
///
/// A model that reads others' words may do what they say. So an action is carried out at once only
/// if the question begins with a request for that kind of action, as in "Please remind me …", and
/// negates nothing; any other is proposed. In other languages than English, German, Spanish and
/// French no request is known, and everything is proposed.
struct AskedFor: Sendable {
  private let words: Set<String>
  private let kind: Kind?

  /// Reads a question; one that wants to know something requests nothing.
  init(_ question: String) {
    words = QueryWords.all(in: question)
    let isQuestion = question.contains { $0 == "?" || $0 == "？" }
    let isNegated = question.lowercased().contains("n't") || question.lowercased().contains("n’t")
    kind =
      isQuestion || isNegated || !words.isDisjoint(with: Self.negations)
      ? nil : Self.request(question.lowercased().split { !$0.isLetter }.map { String($0) })
  }

  /// Whether the question requests any action.
  var isRequest: Bool { kind != nil }

  /// Whether the question requests this kind of action, with at least so many of the words of
  /// content that the action has, from 0 to 1.
  func requests(_ kind: Kind, with text: String, share: Double) -> Bool {
    guard kind == self.kind else { return false }
    let content = QueryWords.all(in: text).subtracting(LexicalEmbedding.frequentWords)
    guard !content.isEmpty else { return false }
    return Double(content.intersection(words).count) >= share * Double(content.count)
  }

  /// Whether the question names somebody by a name, of which it says more than the request itself.
  func names(_ name: String) -> Bool {
    let all = QueryWords.all(in: name)
    let telling = all.subtracting(LexicalEmbedding.frequentWords).filter { word in
      !Self.makes.contains(word)
        && !Kind.allCases.contains { kind in
          kind.verbs.contains(word) || kind.nouns.contains { word.hasPrefix($0) }
        }
    }
    return !telling.isEmpty && all.isSubset(of: words)
  }

  /// What one can request, with the beginnings of the words that do.
  enum Kind: Sendable, CaseIterable {
    case call, message, reminder

    /// The verbs with which a request begins.
    fileprivate var verbs: Set<String> {
      switch self {
      case .call: ["call", "ring", "phone", "meet", "ruf", "rufe", "telefoniere"]
      case .message:
        [
          "send", "write", "tell", "message", "text", "say", "reply", "schreib", "schreibe",
          "schick", "schicke", "sende", "sag", "sage", "antworte", "escribe", "escríbele", "envía",
          "envia", "envíale", "manda", "dile", "di", "écris", "ecris", "écrivez", "envoie",
          "envoyez", "dis", "dites", "réponds",
        ]
      case .reminder:
        [
          "remind", "erinner", "erinnere", "recuérdame", "recuerdame", "rappelle", "rappelez",
        ]
      }
    }

    /// The beginnings of the nouns for what can be made.
    fileprivate var nouns: [String] {
      switch self {
      case .call:
        [
          "call", "appointment", "meeting", "talk", "termin", "anruf", "gespräch", "telefonat",
          "llamada", "cita", "reunión", "appel", "rendez",
        ]
      case .message: ["message", "nachricht", "mensaje", "reply", "antwort"]
      case .reminder: ["reminder", "erinnerung", "recordatorio", "rappel"]
      }
    }
  }

  /// The kind of the request that a question begins with; nil for none.
  private static func request(_ words: [String]) -> Kind? {
    let rest = words.drop { courtesies.contains($0) }
    guard let verb = rest.first else { return nil }
    if makes.contains(verb) {
      // "Schedule a short call with …": what is made stands close to the verb.
      let object = rest.dropFirst().prefix(4)
      let kinds = Kind.allCases.filter { kind in
        object.contains { word in kind.nouns.contains { word.hasPrefix($0) } }
      }
      return kinds.count == 1 ? kinds.first : nil
    }
    // "Tell me" wants to know something.
    let kind = Kind.allCases.first { $0.verbs.contains(verb) }
    if kind != .reminder, let object = rest.dropFirst().first, askers.contains(object) {
      return nil
    }
    return kind
  }

  private static let courtesies: Set<String> = [
    "please", "kindly", "hey", "hi", "hello", "ok", "okay", "and", "now", "then", "also", "bitte",
    "und", "por", "favor", "y", "s", "il", "te", "vous", "plaît", "plait", "et",
  ]
  private static let makes: Set<String> = [
    "schedule", "arrange", "book", "plan", "set", "put", "make", "add", "create", "plane",
    "vereinbare", "vereinbar", "mach", "mache", "trag", "trage", "setz", "setze", "stell", "leg",
    "programa", "agenda", "pon", "crea", "reserva", "planifie", "ajoute", "mets", "fixe", "crée",
  ]
  private static let askers: Set<String> = [
    "me", "us", "my", "mir", "uns", "mein", "meine", "moi", "nous", "mi", "nos",
  ]
  private static let negations: Set<String> = [
    "not", "no", "never", "dont", "nothing", "nobody", "without", "stop", "cancel", "nicht", "nie",
    "niemals", "kein", "keine", "keinen", "keiner", "nichts", "ohne", "nunca", "jamás", "sin", "ne",
    "pas", "jamais", "sans", "rien", "cannot",
  ]
}
