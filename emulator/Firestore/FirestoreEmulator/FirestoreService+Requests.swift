import DocumentModel
import DocumentStore
import FirestoreProtos
import FirestoreWire
import HTTPSupport
import Logging
package import StatusCodes
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Parsing of the parts that many requests share.
extension FirestoreService {
  /// Parses a database's name.
  func database(_ text: String) throws -> DatabaseName {
    let database = try WireFormat.database(text)
    note(database)
    return database
  }

  /// Parses a document's name.
  func documentName(_ text: String) throws -> DocumentName {
    let name = try WireFormat.documentName(text)
    note(name.database)
    return name
  }

  /// Parses the name of a document that must be in the request's database.
  func documentName(_ text: String, in database: DatabaseName) throws -> DocumentName {
    let name = try WireFormat.documentName(text)
    try check(name, isIn: database)
    return name
  }

  /// Throws if a document is not in the request's database.
  func check(_ name: DocumentName, isIn database: DatabaseName) throws {
    guard name.database == database else {
      throw StatusError.invalidArgument(
        "The request was for database '\(database)' but was attempting to access database "
          + "'\(name.database)'"
      )
    }
  }

  /// Parses the name of a document or of a database's root.
  func parent(_ text: String) throws -> (database: DatabaseName, path: ResourcePath) {
    let parent = try WireFormat.parent(text)
    note(parent.database)
    return parent
  }

  /// Decodes the options of a new transaction; read-write by default.
  func transactionOptions(
    _ proto: Google_Firestore_V1_TransactionOptions
  ) throws -> TransactionOptions {
    switch proto.mode {
    case .readOnly(let options):
      guard case .readTime(let time) = options.consistencySelector else {
        return .readOnly(readTime: nil)
      }
      return .readOnly(readTime: try WireFormat.commitTimestamp(time))
    case .readWrite(let options):
      return .readWrite(
        retry: options.retryTransaction.isEmpty ? nil : TransactionID(options.retryTransaction),
        optimistic: options.concurrencyMode == .optimistic
      )
    case nil:
      return .readWrite(retry: nil, optimistic: false)
    }
  }

  /// Decodes the options of a transaction that a read begins; read-only by default.
  func readingOptions(
    _ proto: Google_Firestore_V1_TransactionOptions
  ) throws -> TransactionOptions {
    proto.mode == nil ? .readOnly(readTime: nil) : try transactionOptions(proto)
  }

  /// Returns the error that a client receives.
  ///
  /// An error without a status is a bug; it is logged and reported as `INTERNAL`.
  package func publicError(for error: any Error) -> any StatusConvertible {
    StatusError.publicError(for: error) {
      logger.error("A Firestore request failed inside", metadata: ["error": "\($0)"])
    }
  }
}

extension TransactionID {
  /// Creates the ID from a message's field.
  init(_ data: Data) {
    self.init(bytes: Array(data))
  }

  /// The ID for a message's field.
  var data: Data { Data(bytes) }
}
