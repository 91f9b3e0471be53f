import FirestoreClient
import PsstModels

/// The command that sends a message in the caller's name.
struct SendMessage: AssistantCommand {
  var chatId: String
  var text: String

  static let name = "sendMessage"
  static let summary = """
    Proposes a message in the trainer's name to one of their chats; the trainer confirms it before \
    it is sent. Only when the trainer asks for a message.
    """
  static let descriptions = [
    "client": "The client's name as in the question, or an id that findClients returned; or null",
    "chatId": "The id of another chat, such as a group, that a tool returned; or null",
    "text": "The message",
  ]
  static let namesPeople = true

  /// The arguments of the tool.
  struct Arguments: Codable, Sendable {
    var client: String?
    var chatId: String?
    var text: String
  }

  init(_ arguments: Arguments, _ people: AssistantPeople?) throws {
    text = arguments.text
    switch (arguments.client, arguments.chatId) {
    case (nil, let chatID?): chatId = chatID
    case (let name?, nil):
      guard let chat = try people?.client(called: name).chats.first else {
        throw ActionRefusedError("there is no chat with this client")
      }
      chatId = chat.id
    default: throw ActionRefusedError("name either the client or the chat")
    }
  }

  func isAsked(by question: AssistantQuestion, _ reader: ActionReader) async throws -> Bool {
    question.allows(Self.name)
      && question.openChats.contains(
        reader.firestore.collection(Chat.collection).document(chatId)
      )
      && question.asks.requests(.message, with: text, share: 1)
  }

  func check(_ caller: AssistantCaller, _ reader: ActionReader) async throws {
    try text.checked("text", charactersMax: 10_000)
    guard chatId.isDocumentID, let chat = try await reader.chat(chatId),
      chat.members.contains(caller.uid)
    else { throw ActionRefusedError("the caller is in no such chat") }
    let access = MessageAccess(firestore: reader.firestore)
    guard try await access.mayWrite(caller.uid, in: chat, reader.transaction) else {
      throw ActionRefusedError("one of the two people of this chat has removed the other")
    }
  }

  func targetName(_ reader: ActionReader) async throws -> String? {
    guard let chat = try await reader.chat(chatId) else { return nil }
    if chat.isGroupChat, let name = chat.groupName, !name.isEmpty {
      // Members choose the group's name, which may be the name of a person.
      return "\(name.asName) (group of \(Set(chat.members).count))"
    }
    let others = Set(chat.members).subtracting([reader.uid]).sorted()
    var names: [String] = []
    for other in others.prefix(Self.namesMax) { names.append(try await reader.name(of: other)) }
    if others.count > names.count { names.append("\(others.count - names.count) more") }
    return names.joined(separator: ", ")
  }

  /// The maximum number of members listed by name for a group without a name.
  private static let namesMax = 5

  func write(
    _ caller: AssistantCaller,
    actionID: String,
    _ firestore: Firestore,
    _ transaction: Transaction
  ) throws -> DocumentReference {
    let reference = firestore.collection(Chat.collection).document(chatId)
      .collection(Message.collection).document(actionID)
    try transaction.set(
      reference,
      [
        "id": .value(actionID), "text": .value(text), "senderID": .value(caller.uid),
        "timestamp": .value(caller.now), "readBy": .value([caller.uid]),
      ]
    )
    return reference
  }
}
