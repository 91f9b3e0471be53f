package import DocumentModel
package import FirestoreProtos
package import StatusCodes
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A response message of Listen.
package enum ListenReply: WireReply {
  /// A change in the state of targets; an empty list of ids means all targets.
  case target(
    Google_Firestore_V1_TargetChange.TargetChangeType,
    [Int32],
    cause: StatusError? = nil,
    token: [UInt8] = [],
    readTime: Timestamp? = nil
  )
  /// A changed document, together with the result of `encode`.
  case document(FirestoreDocument, encoded: [UInt8], targets: [Int32], removedTargets: [Int32])
  case deleted(DocumentName, removedTargets: [Int32], readTime: Timestamp)
  case removed(DocumentName, removedTargets: [Int32], readTime: Timestamp)
  /// The number of a target's documents and a bloom filter of their names.
  case filter(Int32, count: Int, bitmap: [UInt8], padding: Int, hashCount: Int)

  /// Returns the encoded message of a document.
  package static func encode(_ document: FirestoreDocument) -> [UInt8] {
    DocumentReply(document).bytes
  }

  package var proto: Google_Firestore_V1_ListenResponse {
    .with { reply in
      switch self {
      case .target(let type, let targets, let cause, let token, let readTime):
        reply.targetChange = .with {
          $0.targetChangeType = type
          $0.targetIds = targets
          if let cause { $0.cause = WireFormat.proto(cause) }
          $0.resumeToken = Data(token)
          if let readTime { $0.readTime = WireFormat.proto(readTime) }
        }
      case .document(let document, _, let targets, let removedTargets):
        reply.documentChange = .with {
          $0.document = WireFormat.proto(document)
          $0.targetIds = targets
          $0.removedTargetIds = removedTargets
        }
      case .deleted(let name, let removedTargets, let readTime):
        reply.documentDelete = .with {
          $0.document = name.description
          $0.removedTargetIds = removedTargets
          $0.readTime = WireFormat.proto(readTime)
        }
      case .removed(let name, let removedTargets, let readTime):
        reply.documentRemove = .with {
          $0.document = name.description
          $0.removedTargetIds = removedTargets
          $0.readTime = WireFormat.proto(readTime)
        }
      case .filter(let target, let count, let bitmap, let padding, let hashCount):
        reply.filter = .with {
          $0.targetID = target
          $0.count = Int32(clamping: count)
          $0.unchangedNames = .with {
            $0.bits.bitmap = Data(bitmap)
            $0.bits.padding = Int32(padding)
            $0.hashCount = Int32(hashCount)
          }
        }
      }
    }
  }

  package var bytes: [UInt8] {
    var encoder = MessageEncoder()
    switch self {
    case .target(let type, let targets, let cause, let token, let readTime):
      encoder.delimited(2) { change in
        change.append(1, unlessZero: Int64(type.rawValue))
        change.append(2, packed: targets)
        if let cause {
          change.delimited(3) { status in
            status.append(1, unlessZero: Int64(cause.statusCode.rawValue))
            status.append(2, bytes: cause.statusMessage.utf8)
          }
        }
        if !token.isEmpty { change.append(4, bytes: token) }
        if let readTime { change.append(6, readTime) }
      }
    case .document(_, let encoded, let targets, let removedTargets):
      encoder.delimited(3) { change in
        change.append(1, bytes: encoded)
        change.append(5, packed: targets)
        change.append(6, packed: removedTargets)
      }
    case .deleted(let name, let removedTargets, let readTime):
      encoder.delimited(4) { change in
        change.append(1, name)
        change.append(4, readTime)
        change.append(6, packed: removedTargets)
      }
    case .removed(let name, let removedTargets, let readTime):
      encoder.delimited(6) { change in
        change.append(1, name)
        change.append(2, packed: removedTargets)
        change.append(4, readTime)
      }
    case .filter(let target, let count, let bitmap, let padding, let hashCount):
      encoder.delimited(5) { filter in
        filter.append(1, unlessZero: Int64(target))
        filter.append(2, unlessZero: Int64(Int32(clamping: count)))
        filter.delimited(3) { names in
          names.delimited(1) { bits in
            if !bitmap.isEmpty { bits.append(1, bytes: bitmap) }
            bits.append(2, unlessZero: Int64(padding))
          }
          names.append(2, unlessZero: Int64(hashCount))
        }
      }
    }
    return encoder.bytes
  }
}
