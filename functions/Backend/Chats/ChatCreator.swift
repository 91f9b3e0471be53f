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
  /// Two people have one chat outside groups: the oldest, even if both ask at the same moment.
  /// While `relationship_validation_enabled` covers the caller, the members must be users, and a
  /// trainer and a client need a contact or a group that they share. Throws `ChatCreationError` and
  /// `FirestoreError`.
  public func create(_ request: CreateChatRequest, by uid: String) async throws -> CreateChatReply {
    let chat = try RequestedChat(request, by: uid)
    let isValidated = try await flags.isOn(.relationshipValidation, for: uid)
    guard chat.isGroup else {
      return try await pairChat(of: uid, and: chat.others[0], isValidated: isValidated)
    }
    if isValidated { try await checkGroup(chat, of: uid) }
    return try await group(chat)
  }

  // MARK: Two people

  private func pairChat(
    of uid: String,
    and other: String,
    isValidated: Bool
  ) async throws -> CreateChatReply {
    // Groups are found outside of the transaction, which would keep their members from writing. A
    // group that is left meanwhile does no harm: the access rules look at it with each message.
    let people = try await People([uid, other], firestore, documents, firestore.getAll)
    let relation = try await people.relation(of: uid, to: other) {
      try await sharedGroup(of: uid, and: other)
    }
    if isValidated, relation == .none {
      for person in [uid, other] where !people.isKnown(person) {
        throw ChatCreationError.userNotFound(person)
      }
      throw ChatCreationError.relationshipNotFound
    }
    var changes: [String: FieldValue] = [:]
    if case .group(let id) = relation { changes["sharedGroupId"] = .value(id) }

    let chats = firestore.collection(Chat.collection)
    let ofPair = chats.where("members", .in, [[uid, other], [other, uid]])
    return try await firestore.runTransaction { transaction in
      // The ranges of the queries are locked, so that of two requests at once the second finds the
      // chat of the first. Groups of the two are left out by the first query; chats of old apps,
      // without the field, are found by the second.
      let queries = [ofPair.where("isGroupChat", .equal, false), ofPair]
      for query in queries {
        let found = try await transaction.get(query.limit(Self.chatsOfPairMax))
        guard let existing = oldest(in: found) else { continue }
        if case .group(let id) = relation, existing["sharedGroupId"] != .string(id) {
          try transaction.update(existing.reference, changes)
        }
        return CreateChatReply(chatId: existing.id, created: false)
      }
      let reference = chats.document()
      let fields = Self.fields(of: reference, members: [uid, other], isGroup: false, name: nil)
      try transaction.create(reference, fields.merging(changes) { $1 })
      return CreateChatReply(chatId: reference.id, created: true)
    }
  }

  private func oldest(in snapshot: QuerySnapshot) -> DocumentSnapshot? {
    snapshot.filter { documents.read($0, as: Chat.self)?.value?.isOneToOne == true }.oldest
  }

  /// Returns the id of a group that has both as members; nil if there is none.
  private func sharedGroup(of uid: String, and other: String) async throws -> String? {
    async let own = groups(of: uid)
    let others = try await groups(of: other)
    return try await own.intersection(others).min()
  }

  /// Returns the ids of a user's groups.
  ///
  /// Their documents are not read, because a group can have thousands of members.
  private func groups(of uid: String) async throws -> Set<String> {
    let query = firestore.collection(Chat.collection).where("members", .arrayContains, uid)
      .where("isGroupChat", .equal, true)
    return Set(try await query.select([]).limit(Self.groupsExaminedMax).get().map(\.id))
  }

  // MARK: Groups

  /// Throws if the caller may not bring a member into a group.
  ///
  /// A trainer may bring everybody; others bring a trainer only if they may talk to them. Otherwise
  /// a group would be the way around the check for chats of two.
  private func checkGroup(_ chat: RequestedChat, of uid: String) async throws {
    let people = try await People([uid] + chat.others, firestore, documents, firestore.getAll)
    for person in chat.members where !people.isKnown(person) {
      throw ChatCreationError.userNotFound(person)
    }
    guard !people.isTrainer(uid) else { return }
    for other in chat.others {
      let relation = try await people.relation(of: uid, to: other) {
        try await sharedGroup(of: uid, and: other)
      }
      guard relation != .none else { throw ChatCreationError.relationshipNotFound }
    }
  }

  private func group(_ chat: RequestedChat) async throws -> CreateChatReply {
    let chats = firestore.collection(Chat.collection)
    let reference = chat.id.map(chats.document) ?? chats.document()
    let fields = Self.fields(
      of: reference,
      members: chat.members,
      isGroup: true,
      name: chat.name
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
    name: String?
  ) -> [String: FieldValue] {
    var fields: [String: FieldValue] = [
      "id": .value(reference.id), "members": .value(members), "isGroupChat": .value(isGroup),
      "lastMessage": "", "lastMessageTimestamp": .serverTimestamp,
      "createdAt": .serverTimestamp, "updatedAt": .serverTimestamp,
    ]
    if let name { fields["groupName"] = .value(name) }
    return fields
  }

  /// The maximum number of chats of the same two people that are compared by age.
  private static let chatsOfPairMax = 100
  /// The maximum number of a user's groups that are compared with another's.
  private static let groupsExaminedMax = 5000
}

/// The reason that a chat is not created.
public enum ChatCreationError: Error, Sendable, Hashable {
  /// The request is invalid, for the given reason.
  case invalid(String)
  /// The caller is not among the members.
  case notMember
  /// There is no user with this uid.
  case userNotFound(String)
  /// A trainer and a client in the chat are not joined by a contact or a group.
  case relationshipNotFound
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

/// What decides whether people may talk to each other: their roles, contacts and removals.
///
/// The access rules decide in the same way about each message.
private struct People {
  enum Relation: Hashable {
    /// Both are trainers, or both are clients.
    case sameRole
    case contact
    /// Both are in the group with this id.
    case group(String)
    case none
  }

  private var users: [String: User] = [:]
  /// The paths of the contacts and of the records of removals that exist.
  private var paths: Set<String> = []
  private let firestore: Firestore

  /// Reads what decides about the first of the people and all others.
  init(
    _ uids: [String],
    _ firestore: Firestore,
    _ documents: DocumentReader,
    _ getAll: ([DocumentReference]) async throws -> [DocumentSnapshot]
  ) async throws {
    self.firestore = firestore
    let collection = firestore.collection(User.collection)
    for snapshot in try await Self.all(uids.map(collection.document), getAll) {
      users[snapshot.id] = documents.read(snapshot, as: User.self)?.value
    }
    guard let first = uids.first else { return }
    let references = uids.dropFirst().flatMap { links(between: first, and: $0) }
    paths = Set(try await Self.all(references, getAll).filter(\.exists).map(\.reference.path))
  }

  private static func all(
    _ references: [DocumentReference],
    _ getAll: ([DocumentReference]) async throws -> [DocumentSnapshot]
  ) async throws -> [DocumentSnapshot] {
    var snapshots: [DocumentSnapshot] = []
    for start in stride(from: 0, to: references.count, by: batchSize) {
      let end = min(start + batchSize, references.count)
      snapshots += try await getAll(Array(references[start..<end]))
    }
    return snapshots
  }

  func isKnown(_ uid: String) -> Bool { users[uid] != nil }

  func isTrainer(_ uid: String) -> Bool { users[uid]?.effectiveRole == .trainer }

  /// Returns the relation of two people; `sharedGroup` is asked only if it matters.
  func relation(
    of uid: String,
    to other: String,
    sharedGroup: () async throws -> String?
  ) async throws -> Relation {
    guard let role = users[uid]?.effectiveRole, let otherRole = users[other]?.effectiveRole else {
      return .none
    }
    if role == otherRole { return .sameRole }
    let (trainer, client) = role == .trainer ? (uid, other) : (other, uid)
    if paths.contains(contact(trainer, client).path) { return .contact }
    // A trainer who has removed a client does not want to hear from them in another way.
    guard !paths.contains(removal(trainer, client).path) else { return .none }
    return try await sharedGroup().map(Relation.group) ?? .none
  }

  /// Returns the documents that join or separate a trainer and a client; none for equal roles.
  private func links(between uid: String, and other: String) -> [DocumentReference] {
    guard let role = users[uid]?.effectiveRole, let otherRole = users[other]?.effectiveRole,
      role != otherRole
    else { return [] }
    let (trainer, client) = role == .trainer ? (uid, other) : (other, uid)
    return [contact(trainer, client), removal(trainer, client)]
  }

  private func contact(_ trainer: String, _ client: String) -> DocumentReference {
    Client.reference(in: firestore, trainerID: trainer, clientID: client)
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
