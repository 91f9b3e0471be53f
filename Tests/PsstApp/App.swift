import FirestoreClient
import Foundation
import OutboundHTTP
import PsstModels
import PsstServices

/// The state of the app: the services of the user who is signed in.
actor App {
  private let authentication: AuthenticationService
  private let firestore: Firestore
  private let functions: String
  private let http: any HTTPTransport
  private let queueFolder: URL?
  private var services: AppServices?
  /// Work that goes on after its command, such as observing.
  private var works: [@Sendable () async -> Void] = []

  init(
    authentication: AuthenticationService,
    firestore: Firestore,
    functions: String,
    http: any HTTPTransport,
    queueFolder: URL?
  ) {
    self.authentication = authentication
    self.firestore = firestore
    self.functions = functions
    self.http = http
    self.queueFolder = queueFolder
  }

  /// Carries out the command of a line, and writes its result.
  ///
  /// Returns the work that goes on afterwards.
  func take(_ line: String) async -> [@Sendable () async -> Void] {
    guard let command = try? JSONDecoder().decode(Command.self, from: Data(line.utf8)) else {
      Output(error: "Unreadable command", text: line).write()
      return []
    }
    do {
      let result = try await carryOut(command)
      Output(id: command.id, ok: result).write()
    } catch {
      Output(id: command.id, error).write()
    }
    defer { works = [] }
    return works
  }

  private func carryOut(_ command: Command) async throws -> [String] {
    switch command.action {
    case "signUp":
      try await authentication.signUp(
        email: try command.value(\.email),
        password: try command.value(\.text),
        displayName: try command.value(\.name),
        role: command.role.flatMap(UserRole.init)
      )
      return try begin()
    case "signIn":
      try await authentication.signIn(
        email: try command.value(\.email),
        password: try command.value(\.text)
      )
      return try begin()
    case "signOut":
      authentication.signOut()
      return []
    default: return try await act(command)
    }
  }

  /// Creates the services, and starts to send what waits.
  private func begin() throws -> [String] {
    let services = try AppServices(
      authentication,
      firestore: firestore,
      functions: functions,
      http: http,
      queueFolder: queueFolder
    )
    self.services = services
    works.append { await services.messages.run() }
    return [services.uid]
  }

  private func act(_ command: Command) async throws -> [String] {
    guard let services else { throw AuthenticationError.notAuthenticated }
    switch command.action {
    case "addClient":
      return [try await services.contacts.addClient(email: try command.value(\.email)).id]
    case "removeClient":
      try await services.contacts.removeClient(clientId: try command.value(\.text))
      return []
    case "clients": return try await services.contacts.getClients().map(\.id)
    case "people": return try await services.chats.getPeople().map(\.displayName)
    case "isContact":
      let isContact = try await services.contacts.validateRelationship(
        trainerId: try command.value(\.text),
        clientId: services.uid
      )
      return ["\(isContact)"]
    case "remind":
      let text = try command.value(\.text)
      return [try await services.reminders.addReminder(text: text, dueDate: Date()).id]
    case "complete":
      try await services.reminders.completeReminder(reminderId: try command.value(\.text))
      return []
    case "reminders": return try await services.reminders.getReminders().map(\.text)
    case "proposals": return try await services.assistant.proposals().map(\.action)
    case "unread":
      return ["\(try await services.messages.unreadCount(in: try command.value(\.chat)))"]
    case "rename":
      try await services.users.updateUser(displayName: try command.value(\.name))
      return []
    case "createChat":
      return [
        try await services.chats.createChat(
          members: command.members ?? [],
          isGroup: command.name != nil,
          name: command.name
        )
      ]
    case "chats": return try await services.chats.fetchChats().map(\.id)
    case "send":
      let chat = try command.value(\.chat)
      return [try await services.messages.sendMessage(try command.value(\.text), in: chat).id]
    case "markAsRead":
      let chat = try command.value(\.chat)
      let messages = try await services.messages.fetchMessages(in: chat)
      try await services.messages.markAsRead(messages, in: chat)
      return []
    case "delete":
      try await services.messages.deleteMessage(
        try command.value(\.text),
        in: try command.value(\.chat)
      )
      return []
    case "ask":
      let reply = try await services.assistant.chatWithAI(try command.value(\.text)) { chunk in
        Output(observed: "answer", items: [chunk.text ?? ""]).write()
      }
      return [reply.reply]
    case "search":
      return try await services.assistant.semanticSearch(try command.value(\.text)).results
        .map(\.text)
    case "observeMessages":
      let chat = try command.value(\.chat)
      works.append {
        await observe(chat, services.messages.observeMessages(in: chat)) { shown in
          shown.map { "\($0.delivery) \($0.message.text) \($0.message.readBy.count)" }
        }
      }
      return []
    case "observeChats":
      works.append {
        await observe("chats", services.chats.observeChats()) { $0.map(\.lastMessage) }
      }
      return []
    default: throw UnknownCommandError(command: command.action)
    }
  }
}

/// Writes each value of an observation, and the error that ends it.
private func observe<Element>(
  _ name: String,
  _ observation: Updates<Element>,
  _ items: @Sendable (Element) -> [String]
) async {
  do {
    for try await element in observation { Output(observed: name, items: items(element)).write() }
  } catch {
    Output(observed: name, error).write()
  }
}

private struct UnknownCommandError: Error {
  var command: String
}

/// A command from the test.
private struct Command: Decodable {
  var id: Int
  var action: String
  var email: String?
  var name: String?
  var role: String?
  var text: String?
  var chat: String?
  var members: [String]?

  private enum CodingKeys: String, CodingKey {
    case id, email, name, role, text, chat, members
    case action = "do"
  }

  struct MissingValueError: Error {}

  func value(_ key: KeyPath<Command, String?>) throws -> String {
    guard let value = self[keyPath: key] else { throw MissingValueError() }
    return value
  }
}

/// A line for the test.
private struct Output: Encodable {
  var id: Int?
  var ok: [String]?
  var observed: String?
  var items: [String]?
  var error: String?
  var text: String?

  init(id: Int, ok: [String]) {
    self.id = id
    self.ok = ok
  }

  init(observed: String, items: [String]) {
    self.observed = observed
    self.items = items
  }

  init(error: String, text: String) {
    self.error = error
    self.text = text
  }

  init(id: Int? = nil, observed: String? = nil, _ error: any Error) {
    self.id = id
    self.observed = observed
    self.error = "\(type(of: error)).\(error)"
    text = (error as? any LocalizedError)?.errorDescription
  }

  func write() {
    guard var line = try? JSONEncoder().encode(self) else { return }
    line.append(UInt8(ascii: "\n"))
    FileHandle.standardOutput.write(line)
  }
}
