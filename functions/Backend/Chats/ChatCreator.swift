public import FirestoreClient
import PsstModels
public import PsstServices

/// A service that creates chats for their members, with the rights of the server.
public struct ChatCreator: Sendable {
  private let firestore: Firestore
  private let documents: DocumentReader
  private let flags: any FeatureFlagSource

  /// Creates a service for a database.
  public init(firestore: Firestore, documents: DocumentReader, flags: any FeatureFlagSource) {
    self.firestore = firestore
    self.documents = documents
    self.flags = flags
  }

  /// Returns the chat that a request asks for, and creates it if necessary.
  ///
  /// Two people have one chat outside groups: the oldest, even if both ask at the same moment. It
  /// is returned whatever their relation is, because the access rules decide who may write to it.
  /// All members must be users, and none may have removed the caller or be removed by them.
  ///
  /// While `relationship_validation_enabled` covers the caller, a new chat needs a contact or a
  /// group that joins its members. Throws `ChatCreationError` and `FirestoreError`.
  public func create(_ request: CreateChatRequest, by uid: String) async throws -> CreateChatReply {
    let chat = try RequestedChat(request, by: uid)
    let people = try await People([uid] + chat.others, firestore, documents)
    for person in chat.members where !people.isKnown(person) {
      throw ChatCreationError.userNotFound(person)
    }
    let isValidated = try await flags.isOn(.relationshipValidation, for: uid)
    guard chat.isGroup else {
      return try await pairChat(people, and: chat.others[0], isValidated: isValidated)
    }
    for other in chat.others where people.areSeparated(from: other) {
      throw ChatCreationError.relationshipNotFound
    }
    if isValidated { try await checkGroup(chat, people) }
    return try await group(chat, by: uid)
  }

  // MARK: Two people

  private func pairChat(
    _ people: People,
    and other: String,
    isValidated: Bool
  ) async throws -> CreateChatReply {
    let uid = people.first
    let chats = firestore.collection(Chat.collection)
    let ofPair = chats.where("members", .in, [[uid, other], [other, uid]])
    // Groups of the two are left out by the first query; chats of old apps, without the field, are
    // found by the second.
    let queries = [ofPair.where("isGroupChat", .equal, false), ofPair].map {
      $0.limit(Self.chatsOfPairMax)
    }
    for query in queries {
      if let id = oldest(in: try await query.get()) {
        return CreateChatReply(chatId: id, created: false)
      }
    }
    // Relations are looked up outside of the transaction, which would keep the members of groups
    // from writing. A removal meanwhile does no harm: the rules look at it with each message.
    try await checkPair(people, and: other, isValidated: isValidated)
    return try await firestore.runTransaction { transaction in
      // The ranges of the queries are locked, so that of two requests at once the second finds the
      // chat of the first.
      for query in queries {
        if let id = oldest(in: try await transaction.get(query)) {
          return CreateChatReply(chatId: id, created: false)
        }
      }
      let reference = chats.document()
      try transaction.create(
        reference,
        Self.fields(of: reference, members: [uid, other], isGroup: false, name: nil, by: uid)
      )
      return CreateChatReply(chatId: reference.id, created: true)
    }
  }

  private func oldest(in snapshot: QuerySnapshot) -> String? {
    snapshot.filter { documents.read($0, as: Chat.self)?.value?.isOneToOne == true }.oldest?.id
  }

  /// Throws if the first of the people may not begin a chat with another.
  private func checkPair(
    _ people: People,
    and other: String,
    isValidated: Bool
  ) async throws {
    // Nobody could write to this chat, at whatever percentage.
    guard !people.areSeparated(from: other) else { throw ChatCreationError.relationshipNotFound }
    guard isValidated else { return }
    switch (people.role(people.first), people.role(other)) {
    case (.trainer, .trainer): return
    case (.client, .client):
      guard try await sharesGroup(people.first, with: other) else {
        throw ChatCreationError.groupNotShared
      }
    case (.trainer, .client), (.client, .trainer):
      if people.hasContact(with: other) { return }
      let trainer = people.role(other) == .trainer ? other : people.first
      guard try await creatorsOfGroups(people.first, other).contains(trainer) else {
        throw ChatCreationError.relationshipNotFound
      }
    default: throw ChatCreationError.relationshipNotFound
    }
  }

  /// Returns true if a trainer who has both clients as contacts created a group of theirs.
  private func sharesGroup(_ uid: String, with other: String) async throws -> Bool {
    for creator in try await creatorsOfGroups(uid, other) where creator.isUserID {
      let people = try await People([creator, uid, other], firestore, documents)
      if people.role(creator) == .trainer,
        people.hasContact(with: uid) && people.hasContact(with: other)
      {
        return true
      }
    }
    return false
  }

  /// Returns the uids of those who created the groups that have both as members.
  private func creatorsOfGroups(_ uid: String, _ other: String) async throws -> Set<String> {
    async let own = groups(of: uid)
    let others = try await groups(of: other)
    return Set(try await own.filter { others[$0.key] != nil }.values)
  }

  /// Returns the ids of a user's groups with their creators.
  ///
  /// Groups older than `createdBy` join nobody. The members are not read, because a group can have
  /// thousands.
  private func groups(of uid: String) async throws -> [String: String] {
    let query = firestore.collection(Chat.collection).where("members", .arrayContains, uid)
      .where("isGroupChat", .equal, true)
    let snapshots = try await query.select(["createdBy"]).limit(Self.groupsExaminedMax).get()
    return Dictionary(
      snapshots.compactMap { snapshot in
        guard case .string(let creator)? = snapshot["createdBy"] else { return nil }
        return (snapshot.id, creator)
      },
      uniquingKeysWith: { first, _ in first }
    )
  }

  // MARK: Groups

  /// Throws if the caller may not bring a member into a group.
  ///
  /// A trainer brings their contacts and other trainers, a client their trainers and the clients
  /// with whom a group joins them. Otherwise a group would be the way around the check for chats of
  /// two.
  private func checkGroup(_ chat: RequestedChat, _ people: People) async throws {
    let role = people.role(people.first)
    let peers = chat.others.filter { role == .client && people.role($0) == .client }
    guard peers.count <= Self.peersMax else {
      throw ChatCreationError.invalid(
        "A client's group has at most \(Self.peersMax) other clients."
      )
    }
    for other in chat.others {
      if people.hasContact(with: other) { continue }
      switch (role, people.role(other)) {
      case (.trainer, .trainer): continue
      case (.client, .client):
        guard try await sharesGroup(people.first, with: other) else {
          throw ChatCreationError.groupNotShared
        }
      default: throw ChatCreationError.relationshipNotFound
      }
    }
  }

  private func group(_ chat: RequestedChat, by uid: String) async throws -> CreateChatReply {
    let chats = firestore.collection(Chat.collection)
    let reference = chat.id.map(chats.document) ?? chats.document()
    let fields = Self.fields(
      of: reference,
      members: chat.members,
      isGroup: true,
      name: chat.name,
      by: uid
    )
    do {
      try await reference.create(fields)
      return CreateChatReply(chatId: reference.id, created: true)
    } catch let error as FirestoreError where error.code == .alreadyExists {
      // The id contains the caller's uid, so an earlier attempt of theirs has made it.
      return CreateChatReply(chatId: reference.id, created: false)
    }
  }

  // MARK: Fields

  private static func fields(
    of reference: DocumentReference,
    members: [String],
    isGroup: Bool,
    name: String?,
    by uid: String
  ) -> [String: FieldValue] {
    var fields: [String: FieldValue] = [
      "id": .value(reference.id), "members": .value(members), "isGroupChat": .value(isGroup),
      "lastMessage": "", "lastMessageTimestamp": .serverTimestamp,
      "createdAt": .serverTimestamp, "updatedAt": .serverTimestamp, "createdBy": .value(uid),
    ]
    if let name { fields["groupName"] = .value(name) }
    return fields
  }

  /// The maximum number of chats of the same two people that are compared by age.
  private static let chatsOfPairMax = 100
  /// The maximum number of a user's groups that are compared with another's.
  private static let groupsExaminedMax = 5000
  /// The maximum number of clients that a client brings into a group; each costs some queries.
  private static let peersMax = 100
}

/// The reason that a chat is not created.
public enum ChatCreationError: Error, Sendable, Hashable {
  /// The request is invalid, for the given reason.
  case invalid(String)
  /// The caller is not among the members.
  case notMember
  /// There is no user with this uid.
  case userNotFound(String)
  /// A trainer and a client in the chat are not joined, or one of them removed the other.
  case relationshipNotFound
  /// No group joins two clients in the chat.
  case groupNotShared
}

/// A valid request for a chat.
private struct RequestedChat {
  var members: [String]
  var others: [String]
  var isGroup: Bool
  var name: String?
  /// The id of a group, the same for each attempt at the same request.
  var id: String?

  init(_ request: CreateChatRequest, by uid: String) throws {
    guard request.members.count <= Self.membersMax else {
      throw ChatCreationError.invalid("A chat has at most \(Self.membersMax) members.")
    }
    guard request.members.allSatisfy({ $0.isUserID && $0.unicodeScalars.count <= 128 }) else {
      throw ChatCreationError.invalid("members must be the uids of users.")
    }
    var seen: Set<[UInt8]> = []
    members = request.members.filter { seen.insert(Array($0.utf8)).inserted }
    guard members.contains(where: { $0.utf8.elementsEqual(uid.utf8) }) else {
      throw ChatCreationError.notMember
    }
    // Firestore tells apart what Swift compares as equal, such as two spellings of é.
    guard Set(members).count == members.count,
      members.reduce(0, { $0 + $1.utf8.count }) <= Self.membersBytesMax
    else { throw ChatCreationError.invalid("members must be the uids of users.") }
    others = members.filter { !$0.utf8.elementsEqual(uid.utf8) }
    isGroup = request.isGroupChat ?? false
    guard !others.isEmpty else {
      throw ChatCreationError.invalid("A chat has at least two members.")
    }
    guard isGroup || others.count == 1 else {
      throw ChatCreationError.invalid("A chat of more than two members needs isGroupChat: true.")
    }
    if let name = request.groupName {
      guard isGroup else {
        throw ChatCreationError.invalid("Only a group has a name; leave groupName out.")
      }
      guard let valid = DisplayName(name) else {
        throw ChatCreationError.invalid(
          "groupName must not be blank, and has at most \(DisplayName.lengthMax) characters."
        )
      }
      self.name = valid.text
    }
    if let requestID = request.requestId {
      guard (1...Self.requestIDBytesMax).contains(requestID.utf8.count) else {
        throw ChatCreationError.invalid(
          "requestId must have 1 to \(Self.requestIDBytesMax) bytes, such as a UUID."
        )
      }
      id = ContentHash.of(["group", uid, requestID])
    }
  }

  /// The maximum number of members; the access rules enforce the same limit.
  private static let membersMax = 2000
  /// Enough for the uids of Authentication, so that a list of chats stays readable.
  private static let membersBytesMax = 100_000
  private static let requestIDBytesMax = 100
}

/// What decides whether the first of some people may begin a chat with the others.
private struct People {
  /// The uid of the person with whom all others are compared.
  let first: String
  private var users: [String: User] = [:]
  /// The paths of the contacts and of the notes of removals that exist.
  private var paths: Set<String> = []
  private let firestore: Firestore

  /// Reads the users, and the contacts and removals between the first and each other.
  init(_ uids: [String], _ firestore: Firestore, _ documents: DocumentReader) async throws {
    first = uids[0]
    self.firestore = firestore
    let collection = firestore.collection(User.collection)
    for snapshot in try await Self.all(uids.map(collection.document), firestore) {
      users[snapshot.id] = documents.read(snapshot, as: User.self)?.value
    }
    let references = uids.dropFirst().filter { users[$0] != nil }.flatMap { other in
      [contact(other), removal(first, other), removal(other, first)].compactMap { $0 }
    }
    paths = Set(try await Self.all(references, firestore).filter(\.exists).map(\.reference.path))
  }

  private static func all(
    _ references: [DocumentReference],
    _ firestore: Firestore
  ) async throws -> [DocumentSnapshot] {
    var snapshots: [DocumentSnapshot] = []
    for start in stride(from: 0, to: references.count, by: batchSize) {
      let end = min(start + batchSize, references.count)
      snapshots += try await firestore.getAll(Array(references[start..<end]))
    }
    return snapshots
  }

  func isKnown(_ uid: String) -> Bool { users[uid] != nil }

  /// The role of a person; nil for an unknown one.
  func role(_ uid: String) -> UserRole? { users[uid]?.effectiveRole }

  /// Returns true if the trainer of the pair has the client as a contact.
  func hasContact(with other: String) -> Bool {
    contact(other).map { paths.contains($0.path) } ?? false
  }

  /// Returns true if one of the pair has removed the other, as the access rules see it.
  func areSeparated(from other: String) -> Bool {
    paths.contains(removal(first, other).path) || paths.contains(removal(other, first).path)
  }

  /// Returns the contact that would join a trainer and a client; nil for other pairs.
  private func contact(_ other: String) -> DocumentReference? {
    let (trainer, client) = role(first) == .trainer ? (first, other) : (other, first)
    guard role(trainer) == .trainer, role(client) == .client else { return nil }
    return Client.reference(in: firestore, trainerID: trainer, clientID: client)
  }

  private func removal(_ trainer: String, _ client: String) -> DocumentReference {
    Client.removalReference(in: firestore, trainerID: trainer, clientID: client)
  }

  /// The number of documents read with one request.
  private static let batchSize = 300
}

extension BackendServices {
  /// The service that creates chats.
  public var chats: ChatCreator {
    ChatCreator(
      firestore: firestore,
      documents: documents,
      flags: StoredFlags(firestore: firestore)
    )
  }
}
