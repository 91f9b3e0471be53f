public import FirestoreClient
import Foundation
public import PsstModels

/// The chats of the signed-in user.
public struct ChatService: Sendable {
  private let firestore: Firestore
  private let uid: String
  private let users: UserService
  private let functions: CallableClient
  private let documents: DocumentReader

  /// Creates a service for the user with the given uid, as whom `firestore` and `functions` act.
  public init(
    firestore: Firestore,
    uid: String,
    users: UserService,
    functions: CallableClient,
    documents: DocumentReader = DocumentReader()
  ) {
    self.firestore = firestore
    self.uid = uid
    self.users = users
    self.functions = functions
    self.documents = documents
  }

  // MARK: Creating

  /// Returns the id of a new chat, or of the one that two people have already.
  ///
  /// The signed-in user is added automatically. Throws `ChatError`, in particular `userNotFound`,
  /// `relationshipNotFound` if a trainer and a client in it are joined neither by a contact nor by
  /// a group, and `groupNotShared` for two clients. After `networkError` a group may exist; with
  /// the same `requestID`, a repeated call returns it.
  @discardableResult
  public func createChat(
    members: [String],
    isGroup: Bool = false,
    name: String? = nil,
    requestID: String? = nil
  ) async throws -> String {
    if let name, DisplayName(name) == nil { throw ChatError.invalidName }
    let request = CreateChatRequest(
      members: members.contains(uid) ? members : [uid] + members,
      isGroupChat: isGroup,
      groupName: name,
      requestId: requestID ?? UUID().uuidString
    )
    do {
      let reply: CreateChatReply = try await functions.call("createChat", request)
      return reply.chatId
    } catch let failure as CallFailure {
      throw switch failure.code {
      case .failedPrecondition where failure.message == ChatError.groupNotShared.text:
        ChatError.groupNotShared
      case .failedPrecondition: ChatError.relationshipNotFound
      case .invalidArgument: ChatError.invalid(failure.message)
      case .notFound: ChatError.userNotFound
      case .resourceExhausted: ChatError.tooManyRequests(retryAfter: failure.retryAfter)
      default: try ChatError.of(failure)
      }
    } catch {
      throw try ChatError.of(error)
    }
  }

  // MARK: Reading

  /// Returns the user's chats, those with the newest message first.
  ///
  /// A chat that an old app has created is left out until its first message.
  /// `before` is the last chat of the previous page. Throws `ChatError`.
  public func fetchChats(limit: Int = 100, before: Chat? = nil) async throws -> [Chat] {
    try await ChatError.mapping {
      var query = chatsQuery.limit(limit)
      if let before {
        // Chats without a time are not in the list, so there is nothing after them.
        guard let time = before.lastMessageTimestamp else { return [] }
        query = query.order(by: "__name__", descending: true)
          .start(after: time, firestore.collection(Chat.collection).document(before.id))
      }
      return chats(in: try await query.get())
    }
  }

  /// The user's chats now and after every change, those with the newest message first.
  ///
  /// At most `limit` chats are observed.
  public func observeChats(limit: Int = 100) -> Updates<[Chat]> {
    Updates(chatsQuery.limit(limit).snapshots(), errors: ChatError.self) { chats(in: $0) }
  }

  /// Returns a chat of the user; throws `ChatError`.
  ///
  /// A chat that does not exist is `permissionDenied`, like another's chat.
  public func getChat(_ chatID: String) async throws -> Chat {
    try await ChatError.mapping {
      guard chatID.isDocumentID else { throw ChatError.chatNotFound }
      let snapshot = try await firestore.collection(Chat.collection).document(chatID).get()
      guard let chat = chat(in: snapshot) else { throw ChatError.chatNotFound }
      return chat
    }
  }

  // MARK: People

  /// Returns the people with whom the user may begin a chat, by name.
  ///
  /// A trainer gets their clients, and the trainers in their chats. A client gets their trainers,
  /// and the clients in groups that a trainer made. The last 100 chats, their first 2000 members
  /// and the last 1000 clients count. A trainer may also begin a chat with any other trainer, whom
  /// `getUserByEmail` finds. A client cannot read whose contact they are, so `createChat` may still
  /// refuse. Throws `ChatError`.
  public func getPeople() async throws -> [User] {
    try await ChatError.mapping {
      let user = try await users.getUser(uid)
      let chats = try await fetchChats()
      let members = try await users.getUsers(
        Set(chats.lazy.flatMap(\.members).prefix(Self.membersMax))
      )
      func isTrainer(_ id: String?) -> Bool {
        id.flatMap { members[$0]?.effectiveRole } == .trainer
      }
      var ids: Set<String> = Set(user.personalTrainerId.map { [$0] } ?? [])
      if user.effectiveRole == .trainer {
        ids = Set(try await clientIDs() + members.keys.filter(isTrainer))
      }
      for chat in chats where user.effectiveRole == .client {
        if !chat.isGroupChat {
          ids.formUnion(chat.members)
        } else if let creator = chat.createdBy, isTrainer(creator) {
          ids.formUnion(chat.members.filter { $0 == creator || !isTrainer($0) })
        }
      }
      let people = try await users.getUsers(
        Set(ids.subtracting([uid]).prefix(Self.membersMax))
      ).values
      let named = people.map { (name: ContactSearch.folded($0.displayName), user: $0) }
      return named.sorted { ($0.name, $0.user.id) < ($1.name, $1.user.id) }.map(\.user)
    }
  }

  private func clientIDs() async throws -> [String] {
    try await firestore.collection(Client.collection).document(uid).collection(Client.clients)
      .order(by: "addedAt", descending: true).limit(Self.clientsMax).get().map(\.id)
  }

  private static let clientsMax = 1000
  /// The maximum number of members that are looked at; a group may have 2000.
  private static let membersMax = 2000

  // MARK: Names

  /// Returns the names of the members of chats, by uid; a member without a user has none.
  ///
  /// Throws `ChatError`.
  public func memberNames(of chats: [Chat]) async throws -> [String: String] {
    let ids = Set(chats.flatMap(\.members))
    return try await ChatError.mapping {
      try await users.getUsers(ids).mapValues(\.displayName).filter { !$0.value.isEmpty }
    }
  }

  /// Returns the title of a chat: the group's name, or the names of the others.
  ///
  /// `names` are those of `memberNames(of:)`.
  public func title(of chat: Chat, names: [String: String]) -> String {
    if let name = chat.groupName, DisplayName(name) != nil { return name }
    let others = chat.members.filter { $0 != uid }.compactMap { names[$0] }
    return others.isEmpty ? Self.unknownName : others.joined(separator: ", ")
  }

  private static let unknownName = "Unknown"

  // MARK: Groups

  /// Changes the name of a group; throws `ChatError`, for example `permissionDenied`.
  public func setGroupName(_ name: String, of chatID: String) async throws {
    guard let name = DisplayName(name) else { throw ChatError.invalidName }
    try await update(chatID, ["groupName": .value(name.text)])
  }

  /// Removes the signed-in user from a group; throws `ChatError`.
  public func leaveGroup(_ chatID: String) async throws {
    try await update(chatID, ["members": .arrayRemove(uid)])
  }

  private func update(_ chatID: String, _ fields: [String: FieldValue]) async throws {
    try await ChatError.mapping {
      guard chatID.isDocumentID else { throw ChatError.chatNotFound }
      try await firestore.collection(Chat.collection).document(chatID)
        .update(fields.merging(["updatedAt": .serverTimestamp]) { $1 })
    }
  }

  // MARK: Helpers

  private var chatsQuery: DocumentQuery {
    firestore.collection(Chat.collection).where("members", .arrayContains, uid)
      .order(by: "lastMessageTimestamp", descending: true)
  }

  private func chats(in snapshot: QuerySnapshot) -> [Chat] { snapshot.compactMap(chat) }

  private func chat(in snapshot: DocumentSnapshot) -> Chat? {
    var chat = documents.read(snapshot, as: Chat.self)?.value
    chat?.id = snapshot.id
    return chat
  }
}
