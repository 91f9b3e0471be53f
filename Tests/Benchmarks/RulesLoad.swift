import FirestoreProtos
import NIOCore
import SwiftProtobuf

/// A request of a trainer in a chat with a client, which Psst's rules decide.
enum RuledRequest: String, CaseIterable, Sendable {
  /// Of a message; the rules look at the chat.
  case get
  /// Of a message; the rules look at the chat, both people and their contact.
  case create
  /// Of twenty messages; the rules look at the chat.
  case query

  fileprivate var method: String {
    switch self {
    case .get: FirestoreLoad.get
    case .create: FirestoreLoad.commit
    case .query: QueryShape.order.method
    }
  }
}

/// Requests of one who is no administrator, and what they need.
struct RulesLoad: Sendable {
  var firestore: FirestoreLoad

  static let trainer = "trainer"
  static let client = "client"
  static let chat = "chats/ruled"
  static let messages = "\(chat)/messages"
  private static let storedMessages = 1000
  private static let seconds: Int64 = 1_700_000_000

  /// The chat, its people and their contact.
  static let people: [(path: String, fields: [FieldName: Google_Firestore_V1_Value])] = [
    ("users/\(trainer)", ["role": text("trainer")]),
    ("users/\(client)", ["role": text("client")]),
    ("contacts/\(trainer)/clients/\(client)", ["clientId": text(client)]),
    (
      chat,
      ["members": .with { $0.arrayValue.values = [text(trainer), text(client)] }]
    ),
  ]

  /// Stores what the requests need; the administrator's to do.
  func prepare() async throws {
    try await firestore.commit(Self.people.map { firestore.create($0.path, $0.fields) })
    for start in stride(from: 0, to: Self.storedMessages, by: FirestoreLoad.writesInCommit) {
      try await firestore.commit(
        (start..<min(start + FirestoreLoad.writesInCommit, Self.storedMessages)).map {
          firestore.create("\(Self.messages)/d\($0)", Self.message($0))
        }
      )
    }
  }

  /// Makes one request after the other; `round` keeps new messages from being old ones.
  func run(_ request: RuledRequest, _ load: Load, round: String) async throws -> Measurement {
    try await load.run {
      firestore.connect(request.method, on: $0)
    } body: { client, number in
      switch request {
      case .get:
        var get = Google_Firestore_V1_GetDocumentRequest()
        // The factor shares no divisor with the number of messages, so each has its turn.
        let index = (number * 1009 + client * 131) % Self.storedMessages
        get.name = firestore.name("\(Self.messages)/d\(index)")
        return try firestore.encoded(get)
      case .create:
        let path = "\(Self.messages)/\(round)-\(client)-\(number)"
        return try firestore.encoded(
          firestore.commit([firestore.create(path, Self.message(number))])
        )
      case .query:
        var query = Google_Firestore_V1_RunQueryRequest()
        query.parent = firestore.name(Self.chat)
        query.structuredQuery.from = [.with { $0.collectionID = "messages" }]
        query.structuredQuery.orderBy = [.with { $0.field.fieldPath = "timestamp" }]
        query.structuredQuery.limit = .init(20)
        return try firestore.encoded(query)
      }
    }
  }

  /// A message of the trainer.
  static func message(_ number: Int) -> [FieldName: Google_Firestore_V1_Value] {
    [
      "senderID": text(trainer),
      "text": text("The knee is better today, I walked for half an hour."),
      "timestamp": .with { $0.timestampValue.seconds = seconds + Int64(number) },
      "readBy": .with { $0.arrayValue.values = [text(trainer)] },
    ]
  }

  private static func text(_ text: String) -> Google_Firestore_V1_Value {
    .with { $0.stringValue = text }
  }
}
