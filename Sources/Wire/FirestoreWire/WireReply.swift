package import DocumentModel
package import FirestoreProtos
package import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A reply that carries a document, available as a message or, faster, as encoded bytes.
package protocol WireReply: Sendable {
  associatedtype Proto: SwiftProtobuf.Message

  /// The reply as a message.
  var proto: Proto { get }
  /// The encoded bytes of the reply's message.
  var bytes: [UInt8] { get }
}

/// The reply of GetDocument.
package struct DocumentReply: WireReply {
  package var document: FirestoreDocument

  package init(_ document: FirestoreDocument) { self.document = document }

  package var proto: Google_Firestore_V1_Document { WireFormat.proto(document) }

  package var bytes: [UInt8] {
    var encoder = MessageEncoder()
    encoder.append(document)
    return encoder.bytes
  }
}

/// A reply of RunQuery: a result, or other information about the call.
package struct QueryReply: WireReply {
  package var document: FirestoreDocument?
  package var transaction: [UInt8] = []
  package var readTime: Timestamp?
  package var skippedResults: Int32 = 0
  package var explainMetrics: Google_Firestore_V1_ExplainMetrics?

  /// Creates an empty reply.
  package init() {}

  package var proto: Google_Firestore_V1_RunQueryResponse {
    .with { proto in
      if let document { proto.document = WireFormat.proto(document) }
      proto.transaction = Data(transaction)
      if let readTime { proto.readTime = WireFormat.proto(readTime) }
      proto.skippedResults = skippedResults
      if let explainMetrics { proto.explainMetrics = explainMetrics }
    }
  }

  package var bytes: [UInt8] {
    var encoder = MessageEncoder()
    if let document { encoder.append(1, document) }
    if !transaction.isEmpty { encoder.append(2, bytes: transaction) }
    if let readTime { encoder.append(3, readTime) }
    encoder.append(4, unlessZero: Int64(skippedResults))
    // A message without required fields can always be serialized.
    if let metrics: [UInt8] = try? explainMetrics?.serializedBytes() {
      encoder.append(11, bytes: metrics)
    }
    return encoder.bytes
  }
}

/// A reply of BatchGetDocuments: a document, the name of a missing one, or a new transaction.
package struct LookUpReply: WireReply {
  /// The result of looking up a name.
  package enum Result: Sendable {
    case found(FirestoreDocument)
    case missing(DocumentName)
  }

  package var result: Result?
  package var transaction: [UInt8] = []
  package var readTime: Timestamp?

  /// Creates an empty reply.
  package init() {}

  package var proto: Google_Firestore_V1_BatchGetDocumentsResponse {
    .with { proto in
      switch result {
      case .found(let document): proto.found = WireFormat.proto(document)
      case .missing(let name): proto.missing = name.description
      case nil: break
      }
      proto.transaction = Data(transaction)
      if let readTime { proto.readTime = WireFormat.proto(readTime) }
    }
  }

  package var bytes: [UInt8] {
    var encoder = MessageEncoder()
    switch result {
    case .found(let document): encoder.append(1, document)
    case .missing(let name): encoder.append(2, name)
    case nil: break
    }
    if !transaction.isEmpty { encoder.append(3, bytes: transaction) }
    if let readTime { encoder.append(4, readTime) }
    return encoder.bytes
  }
}
