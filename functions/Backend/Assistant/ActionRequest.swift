/// The action that a question itself requests, regardless of what a model makes of it.
///
/// A model that reads messages of other people may follow instructions in them. An action is
/// therefore carried out at once only if the question begins with a request for that kind of
/// action, as in "Please remind me …", and contains no negation. Any other action is only proposed.
/// Requests are recognized only in English, German, Spanish and French; in other languages
/// everything is proposed.
struct ActionRequest: Sendable {
  private let words: Set<String>
  /// The words after the verb of the request, in the form in which names are compared.
  private let objectWords: [String]
  /// The words in the form in which names are compared.
  private let nameWords: Set<String>
  private let pictures: Set<Unicode.Scalar>
  private let kind: Kind?

  /// Reads a question.
  ///
  /// A text that asks for information requests no action.
  init(_ question: String) {
    words = QueryWords.all(in: question)
    nameWords = Set(NameWords.of(question))
    pictures = Self.pictures(in: question)
    let isQuestion = question.contains { $0 == "?" || $0 == "？" }
    let isNegated = question.lowercased().contains("n't") || question.lowercased().contains("n’t")
    let spoken = question.lowercased().split { !$0.isLetter }.map { String($0) }
    objectWords = NameWords.of(
      spoken.drop { Self.courtesies.contains($0) }.dropFirst().joined(separator: " ")
    )
    kind =
      isQuestion || isNegated || !words.isDisjoint(with: Self.negations)
      ? nil : Self.request(spoken)
  }

  /// True if the question requests an action of any kind.
  var isRequest: Bool { kind != nil }

  /// Returns true if the question requests an action of this kind.
  func isRequest(for kind: Kind) -> Bool { kind == self.kind }

  /// True if the question has a word about who is there.
  var asksWhoIsThere: Bool { !words.isDisjoint(with: Self.presenceWords) }

  private static let presenceWords: Set<String> = [
    "online", "offline", "active", "inactive", "available", "reachable", "seen", "aktiv", "inaktiv",
    "erreichbar", "gesehen", "activo", "activa", "disponible", "visto", "vista", "actif",
    "joignable", "vu", "vue",
  ]

  /// Returns true if the question requests this kind of action.
  ///
  /// The question must also contain at least the given share, from 0 to 1, of the content words of
  /// `text`.
  func requests(_ kind: Kind, with text: String, share: Double) -> Bool {
    guard kind == self.kind else { return false }
    // A picture may say anything.
    guard Self.pictures(in: text).isSubset(of: pictures) else { return false }
    let content = QueryWords.all(in: text)
      .subtracting(LexicalEmbedding.frequentWords.subtracting(Self.negations))
    guard !content.isEmpty else { return false }
    return Double(content.intersection(words).count) >= share * Double(content.count)
  }

  private static func pictures(in text: String) -> Set<Unicode.Scalar> {
    Set(text.unicodeScalars.filter { $0.properties.generalCategory == .otherSymbol })
  }

  /// Returns true if the question contains all words of a name.
  ///
  /// At least one of them must be neither a frequent word nor a word of the request itself.
  func names(_ name: String) -> Bool {
    let all = QueryWords.all(in: name)
    let telling = all.subtracting(LexicalEmbedding.frequentWords).subtracting(Self.requestWords)
    return !telling.isEmpty && all.isSubset(of: words)
  }

  /// Returns true if the request is addressed to a name, which stands next to its verb.
  ///
  /// Between the two are only words such as "a call tomorrow with". In "Tell Dana that Carl is
  /// ill", Carl is not addressed.
  func addresses(_ name: String) -> Bool {
    guard let word = objectWords.first(where: { !Self.connecting.contains($0) }) else {
      return false
    }
    return NameWords.of(name).contains(word)
  }

  private static let connecting = Set(
    [
      "a", "an", "the", "to", "with", "for", "short", "quick", "brief", "note", "text", "on", "at",
      "today", "tomorrow", "tonight", "next", "this", "week", "morning", "afternoon", "evening",
      "am", "pm", "o", "clock", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
      "sunday", "mit", "an", "ein", "eine", "einen", "kurze", "kurzen", "morgen", "heute", "um",
      "uhr", "montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag", "con",
      "un", "una", "hoy", "mañana", "las", "la", "à", "avec", "une", "demain", "up", "out", "in",
    ].flatMap(NameWords.of)
  ).union(requestNameWords)

  /// Returns true if the question has a telling word of a name, or one that begins like it.
  ///
  /// The person may then be meant. Frequent words tell nothing, but as the first word of a name, as
  /// in "Will Smith". Words of the request itself tell nothing either.
  func mentions(_ name: String) -> Bool {
    NameWords.of(name).enumerated().contains { index, word in
      guard !Self.requestNameWords.contains(word), !(word.count == 1 && word.utf8.count == 1),
        index == 0 || !NameWords.frequent.contains(word)
      else { return false }
      return nameWords.contains { asked in
        if asked == word { return true }
        guard min(asked.count, word.count) >= Self.stemLength,
          !NameWords.frequent.contains(asked), !NameWords.frequent.contains(word)
        else { return false }
        return asked.hasPrefix(word) || word.hasPrefix(asked)
      }
    }
  }

  /// The number of letters from which a word can be short for a name.
  private static let stemLength = 3
  /// The words that make a request, with the plurals of the nouns.
  private static let requestWords = Kind.allCases.reduce(into: makes) { words, kind in
    words.formUnion(kind.verbs)
    for noun in kind.nouns { words.formUnion([noun, noun + "s"]) }
  }
  private static let requestNameWords = Set(requestWords.flatMap(NameWords.of))

  /// The kinds of actions that a question can request, with the words that request them.
  enum Kind: Sendable, CaseIterable {
    case call, message, reminder

    /// The verbs that begin a request.
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

    /// The prefixes of the nouns that name the object of a request.
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

  /// The kind of the request that begins a question; nil if there is none.
  private static func request(_ words: [String]) -> Kind? {
    let rest = words.drop { courtesies.contains($0) }
    guard let verb = rest.first else { return nil }
    if makes.contains(verb) {
      // In "Schedule a short call with …" the object stands close to the verb.
      let object = rest.dropFirst().prefix(4)
      let kinds = Kind.allCases.filter { kind in
        object.contains { word in kind.nouns.contains { word.hasPrefix($0) } }
      }
      return kinds.count == 1 ? kinds.first : nil
    }
    // "Tell me" asks for information.
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
