import FirestoreClient
import PsstModels

/// What an assistant does in somebody's name, as a tool's arguments describe it.
protocol AssistantCommand: AssistantTool {
  /// Whether the question asks for just this, so that it is done at once and not only proposed.
  func isAsked(by question: AssistantQuestion, _ reader: ActionReader) async throws -> Bool

  /// Throws `ActionRefusal` where the caller could not do this themself now.
  func check(_ caller: AssistantCaller, _ reader: ActionReader) async throws

  /// The name of the person or the group that the command is for; nil for the caller alone.
  ///
  /// It is what the caller decides by, so it does not come from the model.
  func targetName(_ reader: ActionReader) async throws -> String?

  /// Writes what the command is about, under the action's id, and returns the document's place.
  func write(
    _ caller: AssistantCaller,
    actionID: String,
    _ firestore: Firestore,
    _ transaction: Transaction
  ) throws -> DocumentReference
}

/// A question with what it allows to do at once.
struct AssistantQuestion: Sendable {
  var asks: AskedFor
  /// The one client whom it names, as the caller's contacts do; nil for none, and for several.
  var client: String?
  /// The chats with that client, if messages to these may be sent without asking.
  var openChats: Set<DocumentReference> = []
  /// The tools that have acted for it already.
  var done: Set<String> = []

  /// Whether a tool may act at once: each acts so once for a question.
  ///
  /// What an earlier attempt has done counts for all tools, because it may be what was asked for.
  func allows(_ tool: String) -> Bool { !wasActedFor && !done.contains(tool) }

  /// Whether an earlier attempt to answer the question has done something.
  var wasActedFor = false
}

/// The one whom the assistant serves.
struct AssistantCaller: Sendable {
  var uid: String
  /// The time at which they asked, or said yes.
  var now: Timestamp
  /// Where their clock hangs.
  var zone: AssistantZone
}

/// Why an action is not allowed, as the model and the caller may read it.
struct ActionRefusal: Error, Sendable, Hashable {
  var reason: String

  init(_ reason: String) {
    self.reason = reason
  }
}

/// Reads what the checks of commands need, in the transaction that writes.
struct ActionReader: Sendable {
  let firestore: Firestore
  let documents: DocumentReader
  let transaction: Transaction
  /// The one for whom the command is checked.
  let uid: String

  /// The role of a user; nil for nobody, and for an unknown role.
  func role(of uid: String) async throws -> User.Role? {
    let user = try await transaction.get(firestore.collection(User.collection).document(uid))
    return documents.read(user, as: User.self)?.value?.effectiveRole
  }

  /// Whether a client is among a trainer's contacts.
  func isContact(_ clientID: String, of trainerID: String) async throws -> Bool {
    try await contactName(of: clientID, at: trainerID) != nil
  }

  /// The name of a client among a trainer's contacts; nil when the client is none of them.
  func contactName(of clientID: String, at trainerID: String) async throws -> String? {
    let reference = Contact.reference(in: firestore, trainerID: trainerID, clientID: clientID)
    let contact = try await transaction.get(reference)
    guard contact.exists else { return nil }
    if case .string(let name)? = contact["displayName"] { return name }
    return ""
  }

  /// The name that the caller knows somebody by: that of their contact, or the person's own.
  func name(of uid: String) async throws -> String {
    let contact = try await contactName(of: uid, at: self.uid) ?? ""
    if !contact.isEmpty { return contact.asName }
    let user = try await transaction.get(firestore.collection(User.collection).document(uid))
    let name = documents.read(user, as: User.self)?.value?.displayName ?? ""
    return name.isEmpty ? uid : name.asName
  }

  /// A chat; nil when there is none that can be read.
  func chat(_ chatID: String) async throws -> Chat? {
    let chat = try await transaction.get(firestore.collection(Chat.collection).document(chatID))
    return documents.read(chat, as: Chat.self)?.value
  }
}

extension String {
  /// A name that others may have chosen, as a line of a dialog shows it.
  ///
  /// Characters that turn the direction of the text around are left out.
  var asName: String {
    let scalars = unicodeScalars.filter { scalar in
      switch scalar.value {
      case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: false
      default: true
      }
    }
    return String(String.UnicodeScalarView(scalars)).oneLine.prefix(bytesMax: 100)
  }

  /// Throws `ActionRefusal` for a blank text, or one with more characters.
  func checked(_ name: String, charactersMax: Int) throws {
    guard contains(where: { !$0.isWhitespace }) else { throw ActionRefusal("\(name) is blank") }
    guard unicodeScalars.count <= charactersMax else {
      throw ActionRefusal("\(name) has more than \(charactersMax) characters")
    }
  }
}
