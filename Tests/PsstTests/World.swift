import FirestoreClient
import FunctionsRuntime
import OutboundHTTP
import PsstFunctions
import PsstServices
import Synchronization
import TestSupport

/// Psst's functions over stand-ins: one trainer, two clients, a chat of trainer and client.
struct World: Sendable {
  let store = MemoryFirestore()
  let providers = ProviderStandIn()
  let logs = LogCapture()
  let functions: MessageFunctions
  let services: MessageServices
  let waits = Waits()

  init(_ embedding: EmbeddingSettings = .lexical) {
    services = MessageServices(
      firestore: store.firestore,
      settings: PsstSettings(
        embedding: embedding,
        vectors: VectorSettings(host: ProviderStandIn.host)
      ),
      http: providers,
      retries: ServiceRetries(sleep: { [waits] in waits.add($0) }, random: { 0 })
    )
    functions = MessageFunctions(services: services)
    store.put("users/tina", ["displayName": .string("Tina"), "role": .string("trainer")])
    store.put("users/carl", ["displayName": .string("Carl"), "role": .string("client")])
    store.put("users/cora", ["displayName": .string("Cora"), "role": .string("client")])
    chat("c1", ["tina", "carl"])
  }

  /// A model behind OpenAI's protocol.
  static let tinyModel = EmbeddingSettings.openAI(
    baseURL: ProviderStandIn.host + "/v1",
    key: "key",
    model: EmbeddingModel(
      provider: "openai",
      name: "tiny",
      dimension: 1024,
      relevanceThreshold: 0.1
    )
  )

  func chat(_ id: String, _ members: [String], isGroup: Bool = false) {
    store.put("chats/\(id)", Self.chatFields(members, isGroup: isGroup))
  }

  static func chatFields(_ members: [String], isGroup: Bool = false) -> [String: Value] {
    ["members": .array(members.map { .string($0) }), "isGroupChat": .boolean(isGroup)]
  }

  static func message(_ text: String, by sender: String = "carl") -> [String: Value] {
    [
      "text": .string(text), "senderID": .string(sender),
      "timestamp": .timestamp(Timestamp(microseconds: 1_714_557_600_123_456)),
      "readBy": .array([]),
    ]
  }

  /// Writes a message and has it embedded.
  func say(_ id: String, _ text: String, by sender: String = "carl", in chat: String = "c1")
    async throws
  {
    store.put("chats/\(chat)/messages/\(id)", Self.message(text, by: sender))
    try await embed(id, in: chat)
  }

  /// Delivers an event for a message; what it says of the message is of no account.
  func embed(_ id: String, in chat: String = "c1") async throws {
    let path = "chats/\(chat)/messages/\(id)"
    let document = Document(
      name: store.firestore.document(path).name,
      fields: [:],
      createTime: Timestamp(microseconds: 0),
      updateTime: Timestamp(microseconds: 0)
    )
    try await functions.embedMessage(
      DocumentEvent(path: path, data: .created(document), logger: logs.logger())
    )
  }

  /// Delivers an update of a chat.
  func refresh(_ chat: String = "c1", from: [String], to: [String]) async throws {
    func document(_ members: [String]) -> Document {
      Document(
        name: store.firestore.document("chats/\(chat)").name,
        fields: Self.chatFields(members),
        createTime: Timestamp(microseconds: 0),
        updateTime: Timestamp(microseconds: 0)
      )
    }
    try await functions.refreshChatMembers(
      DocumentEvent(
        path: "chats/\(chat)",
        data: DocumentUpdate(before: document(from), after: document(to)),
        logger: logs.logger()
      )
    )
  }

  func search(
    _ query: String,
    as uid: String = "carl",
    limit: Int? = nil,
    chatId: String? = nil,
    minScore: Double? = nil
  ) async throws -> SemanticSearchReply {
    try await functions.semanticSearch(
      CallableRequest(
        data: SemanticSearchQuery(query: query, limit: limit, chatId: chatId, minScore: minScore),
        auth: .user(uid),
        logger: logs.logger()
      )
    )
  }

  /// The last line of a message in the log.
  func logged(_ message: String) -> [String: String]? {
    logs.entries.last { $0.message == message }?.metadata
  }
}

/// The waits that services asked for.
final class Waits: Sendable {
  private let waits = Mutex<[Duration]>([])
  var all: [Duration] { waits.withLock { $0 } }
  func add(_ wait: Duration) { waits.withLock { $0.append(wait) } }
}
