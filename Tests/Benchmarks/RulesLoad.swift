import FirestoreProtos
import NIOCore
import SwiftProtobuf

/// A trainer's request in a chat with a client, checked by Psst's rules.
enum RuledRequest: String, CaseIterable, Sendable {
  /// Gets a message; the rules read the chat.
  case get
  /// Creates a message; the rules read the chat, both users and their contact.
  case create
  /// Queries twenty messages; the rules read the chat.
  case query

  fileprivate var method: String {
    switch self {
    case .get: FirestoreLoad.get
    case .create: FirestoreLoad.commit
    case .query: QueryShape.order.method
    }
  }
}

/// Requests of a user who is not an administrator, and the data that they need.
struct RulesLoad: Sendable {
  var firestore: FirestoreLoad

  static let trainer = "trainer"
  static let client = "client"
  static let chat = "chats/ruled"
  static let messages = "\(chat)/messages"
  private static let storedMessages = 1000
  private static let seconds: Int64 = 1_700_000_000

  /// The chat, its members and their contact.
  static let people: [(path: String, fields: [FieldName: Google_Firestore_V1_Value])] = [
    ("users/\(trainer)", ["role": text("trainer")]),
    ("users/\(client)", ["role": text("client")]),
    ("contacts/\(trainer)/clients/\(client)", ["clientId": text(client)]),
    (
      chat,
      ["members": .with { $0.arrayValue.values = [text(trainer), text(client)] }]
    ),
  ]

  /// Stores the data that the requests need; requires an administrator.
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

  /// Sends one request after another; `round` keeps the IDs of new messages unique.
  func run(_ request: RuledRequest, _ load: Load, round: String) async throws -> Measurement {
    try await load.run {
      firestore.connect(request.method, on: $0)
    } body: { client, number in
      switch request {
      case .get:
        var get = Google_Firestore_V1_GetDocumentRequest()
        // The factor is coprime to the number of messages, so every message is read.
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
