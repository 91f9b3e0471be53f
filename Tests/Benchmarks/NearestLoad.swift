import FirestoreProtos
import SwiftProtobuf

/// Nearest-neighbor searches over documents with vectors.
extension FirestoreLoad {
  private static let collection = "embedded"
  /// The number of vectors in a commit.
  private static let vectorsInCommit = 200
  private static let load = Load(clients: 1, warmUp: .seconds(1), duration: .seconds(8))

  /// Stores all vectors, each in a document that also names its chat.
  func createVectors(of set: VectorSet) async throws {
    for start in stride(from: 0, to: VectorSet.count, by: Self.vectorsInCommit) {
      try await commit(
        (start..<start + Self.vectorsInCommit).map { row in
          create(
            "\(Self.collection)/\(VectorSet.id(row))",
            [
              "chat": Self.text("chat-\(VectorSet.chat(row))"),
              "text": Self.text("The knee is better today, I walked for half an hour."),
              "embedding": Self.vector(set.values(row)),
            ]
          )
        }
      )
    }
  }

  /// Queries the ten nearest documents, of all chats or of one, one query after another.
  func findNearest(in set: VectorSet, isFiltered: Bool) async throws -> Measurement {
    try await Self.load.run {
      connect("google.firestore.v1.Firestore/RunQuery", on: $0)
    } body: { _, number in
      var request = Google_Firestore_V1_RunQueryRequest()
      request.parent = "\(database)/documents"
      request.structuredQuery.from = [.with { $0.collectionID = Self.collection }]
      if isFiltered {
        request.structuredQuery.where.fieldFilter = .with {
          $0.field.fieldPath = "chat"
          $0.op = .equal
          $0.value = Self.text("chat-\(VectorSet.chat(number))")
        }
      }
      request.structuredQuery.select.fields = [.with { $0.fieldPath = "text" }]
      request.structuredQuery.findNearest = .with {
        $0.vectorField.fieldPath = "embedding"
        $0.queryVector = Self.vector(set.query(number))
        $0.distanceMeasure = .cosine
        $0.limit = .init(10)
      }
      return try encoded(request)
    }
  }

  private static func text(_ text: String) -> Google_Firestore_V1_Value {
    .with { $0.stringValue = text }
  }

  private static func vector(_ numbers: [Float]) -> Google_Firestore_V1_Value {
    .with { value in
      value.mapValue.fields["__type__"] = text("__vector__")
      value.mapValue.fields["value"] = .with {
        $0.arrayValue.values = numbers.map { number in .with { $0.doubleValue = Double(number) } }
      }
    }
  }
}
