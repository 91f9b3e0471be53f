import FirestoreClient
import PsstModels
import PsstServices

/// The people and groups to whom a trainer's words can refer.
struct AssistantPeople: Sendable {
  /// A client among the trainer's contacts.
  struct Person: Sendable, Hashable {
    var id: String
    /// The name that the trainer gave to the client.
    var name: String
    /// The one-to-one chats with the client, the latest first.
    var chats: [DocumentReference] = []
  }

  /// The clients, in the order of their names.
  private(set) var clients: [Person] = []
  /// The names of all people, by id.
  private var names: [String: [String]] = [:]
  private var groupNames: [String] = []
  /// False if there are more people or chats than were read.
  private var isComplete = true

  /// The maximum numbers of contacts and of prospects that are read for a question.
  private static let documentsMax = 1000
  /// The maximum number of chats, which may have 2000 members each.
  private static let chatsMax = 300

  /// Reads the contacts, prospects and chats of a trainer.
  ///
  /// Throws `FirestoreError`.
  init(of uid: String, in firestore: Firestore, _ documents: DocumentReader) async throws {
    let contacts = firestore.collection(Client.collection).document(uid)
    async let clientSnapshots = contacts.collection(Client.clients).query
      .limit(Self.documentsMax).get()
    async let prospectSnapshots = contacts.collection(Prospect.collection).query
      .limit(Self.documentsMax).get()
    async let chatSnapshots = firestore.collection(Chat.collection)
      .where("members", .arrayContains, uid).limit(Self.chatsMax).get()
    let (clients, prospects, chats) = try await (clientSnapshots, prospectSnapshots, chatSnapshots)
    isComplete =
      max(clients.count, prospects.count) < Self.documentsMax && chats.count < Self.chatsMax

    var chatsByPartner: [String: [(chat: DocumentReference, time: Timestamp?)]] = [:]
    for snapshot in chats {
      guard let chat = documents.read(snapshot, as: Chat.self)?.value else { continue }
      if chat.isOneToOne, let other = chat.members.first(where: { $0 != uid }) {
        chatsByPartner[other, default: []].append((snapshot.reference, chat.lastMessageTimestamp))
      } else if let name = chat.groupName {
        groupNames.append(name)
      }
    }
    for snapshot in clients {
      guard case .string(let name)? = snapshot["displayName"] else { continue }
      names[snapshot.id, default: []].append(name)
      let chats = (chatsByPartner[snapshot.id] ?? []).sorted { left, right in
        let times = (left.time?.microseconds ?? 0, right.time?.microseconds ?? 0)
        return (times.1, left.chat.path) < (times.0, right.chat.path)
      }
      self.clients.append(Person(id: snapshot.id, name: name, chats: chats.map(\.chat)))
    }
    for snapshot in prospects {
      guard case .string(let name)? = snapshot["displayName"] else { continue }
      names["prospect \(snapshot.id)", default: []].append(name)
    }
    // People choose their own names, which may be those of others.
    let known = Set(clients.map(\.id)).union(chatsByPartner.keys).filter(\.isDocumentID).sorted()
    let users = firestore.collection(User.collection)
    for snapshot in try await firestore.getAll(known.map { users.document($0) }) {
      guard case .string(let name)? = snapshot["displayName"] else { continue }
      names[snapshot.id, default: []].append(name)
    }
    self.clients.sort { ($0.name, $0.id) < ($1.name, $1.id) }
  }

  /// Returns the only client whom a request names; nil otherwise.
  ///
  /// The name is the one that the trainer gave, and the request is addressed to it. It does not
  /// count if another person, or for a message a group, shares a telling word with the request, or
  /// if not all people are known.
  func client(namedBy asks: ActionRequest) -> Person? {
    guard asks.isRequest, isComplete else { return nil }
    if asks.isRequest(for: .message), groupNames.contains(where: asks.mentions) { return nil }
    let mentioned = names.filter { $0.value.contains(where: asks.mentions) }
    guard mentioned.count == 1 else { return nil }
    return clients.first {
      mentioned[$0.id] != nil && asks.names($0.name) && asks.addresses($0.name)
    }
  }

  /// Returns the client whom a question is about: the only person whom it names.
  func client(mentionedBy asks: ActionRequest) -> Person? {
    guard isComplete else { return nil }
    let mentioned = names.filter { $0.value.contains(where: asks.mentions) }
    guard mentioned.count == 1 else { return nil }
    return clients.first { mentioned[$0.id] != nil && asks.names($0.name) }
  }

  /// Returns the clients to whom a name or an id can refer.
  ///
  /// An id refers to one client, and so does a name that only one client has. Otherwise it refers
  /// to all clients whose names have all its words.
  func clients(called text: String) -> [Person] {
    if let client = clients.first(where: { $0.id.utf8.elementsEqual(text.utf8) }) {
      return [client]
    }
    let words = NameWords.of(text)
    guard !words.isEmpty else { return [] }
    let exact = clients.filter { NameWords.of($0.name) == words }
    return exact.count == 1
      ? exact : clients.filter { Set(words).isSubset(of: NameWords.of($0.name)) }
  }

  /// Returns the only client to whom a name or an id refers.
  ///
  /// Throws `UnresolvedNameError`, with the clients who fit, if there is not exactly one.
  func client(called text: String) throws -> Person {
    let fitting = clients(called: text)
    guard fitting.count == 1 else { throw UnresolvedNameError(candidates: fitting) }
    return fitting[0]
  }
}

/// The error thrown if a name refers to no client, or to several.
struct UnresolvedNameError: Error {
  var candidates: [AssistantPeople.Person]
}
