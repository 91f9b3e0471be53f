import FirestoreClient
import PsstModels
import PsstServices

/// An action that an assistant takes in a user's name, decoded from a tool's arguments.
protocol AssistantCommand: AssistantTool {
  /// True if the tool's arguments name people.
  static var namesPeople: Bool { get }

  /// Creates a command from a tool's arguments, with the people whom they name.
  ///
  /// `people` is nil unless the arguments name people. Throws `UnresolvedNameError` if a name does
  /// not refer to exactly one person, and `ActionRefusedError`.
  init(_ arguments: Arguments, _ people: AssistantPeople?) throws

  /// Returns true if the question asks for exactly this action.
  ///
  /// The action is then carried out at once instead of only proposed.
  func isAsked(by question: AssistantQuestion, _ reader: ActionReader) async throws -> Bool

  /// Throws `ActionRefusedError` if the caller could not do this themself now.
  func check(_ caller: AssistantCaller, _ reader: ActionReader) async throws

  /// The name of the person or group addressed; nil if it is the caller.
  ///
  /// The caller decides by this name, so it never comes from the model.
  func targetName(_ reader: ActionReader) async throws -> String?

  /// Writes the command's document, with the action's id, and returns its reference.
  func write(
    _ caller: AssistantCaller,
    actionID: String,
    _ firestore: Firestore,
    _ transaction: Transaction
  ) throws -> DocumentReference
}

/// A question, and the actions that may be taken for it at once.
struct AssistantQuestion: Sendable {
  var asks: ActionRequest
  /// The id of the only client whom the question names; nil otherwise.
  var client: String?
  /// The chats with `client` to which messages may be sent without confirmation.
  var openChats: Set<DocumentReference> = []
  /// The tools that have already carried out an action for the question.
  var done: Set<String> = []

  /// Returns true if a tool may act at once, which it may do once per question.
  ///
  /// After an action of an earlier attempt no tool may act at once, because that action may be the
  /// requested one.
  func allows(_ tool: String) -> Bool { !wasActedFor && !done.contains(tool) }

  /// True if an earlier attempt to answer the question carried out an action.
  var wasActedFor = false
}

/// The user whom the assistant serves.
struct AssistantCaller: Sendable {
  var uid: String
  /// The time of the question or the confirmation.
  var now: Timestamp
  /// The time zone of the user.
  var zone: AssistantZone
  /// True if the user is a trainer, for whom the assistant can act.
  var isTrainer = true
}

/// The reason that an action is not allowed, readable for the model and the caller.
struct ActionRefusedError: Error, Sendable, Hashable {
  var reason: String

  init(_ reason: String) {
    self.reason = reason
  }
}

/// A reader of the documents that commands check, within the transaction that writes.
struct ActionReader: Sendable {
  let firestore: Firestore
  let documents: DocumentReader
  let transaction: Transaction
  /// The id of the user for whom the command is checked.
  let uid: String

  /// The role of a user; nil if the user does not exist or has an unknown role.
  func role(of uid: String) async throws -> UserRole? {
    let user = try await transaction.get(firestore.collection(User.collection).document(uid))
    return documents.read(user, as: User.self)?.value?.effectiveRole
  }

  /// Returns true if a client is one of a trainer's contacts.
  func isContact(_ clientID: String, of trainerID: String) async throws -> Bool {
    try await contactName(of: clientID, at: trainerID) != nil
  }

  /// The name of a client in a trainer's contacts; nil if the client is not a contact.
  func contactName(of clientID: String, at trainerID: String) async throws -> String? {
    let reference = Client.reference(in: firestore, trainerID: trainerID, clientID: clientID)
    let contact = try await transaction.get(reference)
    guard contact.exists else { return nil }
    if case .string(let name)? = contact["displayName"] { return name }
    return ""
  }

  /// The name by which the caller knows a user.
  ///
  /// It is the name of the caller's contact, or else the user's own name, or else the user's id.
  func name(of uid: String) async throws -> String {
    let contact = try await contactName(of: uid, at: self.uid) ?? ""
    if !contact.isEmpty { return contact.asName }
    let user = try await transaction.get(firestore.collection(User.collection).document(uid))
    let name = documents.read(user, as: User.self)?.value?.displayName ?? ""
    return name.isEmpty ? uid : name.asName
  }

  /// The chat with an id; nil if it does not exist or cannot be read.
  func chat(_ chatID: String) async throws -> Chat? {
    let chat = try await transaction.get(firestore.collection(Chat.collection).document(chatID))
    return documents.read(chat, as: Chat.self)?.value
  }
}

extension String {
  /// The string as a single line of at most 100 bytes, to show a name in a dialog.
  ///
  /// Other users may have chosen the name, so control characters for the text direction are left
  /// out.
  var asName: String {
    let scalars = unicodeScalars.filter { scalar in
      switch scalar.value {
      case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: false
      default: true
      }
    }
    return String(String.UnicodeScalarView(scalars)).oneLine.prefix(bytesMax: 100)
  }

  /// Throws `ActionRefusedError` for a blank text, or one with more Unicode scalars than the limit.
  func checked(_ name: String, charactersMax: Int) throws {
    guard contains(where: { !$0.isWhitespace }) else {
      throw ActionRefusedError("\(name) is blank")
    }
    guard unicodeScalars.count <= charactersMax else {
      throw ActionRefusedError("\(name) has more than \(charactersMax) characters")
    }
  }
}
