import Events

/// A function that runs when a document is created.
///
/// `event.data` is the document.
///
/// ```swift
/// var welcome: OnDocumentCreated<User> {
///   .init("welcome", at: "users/{userId}") { event in
///     let userID = try event.params.userId
///     event.logger.info("Welcome, \(event.data.name) (\(userID))")
///   }
/// }
/// ```
///
/// With `path:` in place of `at:`, the handler also receives the ids of the path, with names and
/// types that the compiler checks; see `DocumentPath`.
///
/// The document is decoded before the handler runs. A document that does not decode is a permanent
/// failure, which is logged with the path of the invalid field. `OnDocumentCreated<Lenient<User>>`
/// runs the handler for every document and passes the decoding error of an invalid one.
/// `OnDocumentCreated<FirestoreDocument>` receives the document as it is stored, without decoding.
public typealias OnDocumentCreated<Payload: Sendable> = DocumentFunction<DocumentCreation<Payload>>

/// A function that runs when fields of a document change.
///
/// `event.data` has both versions.
///
/// ```swift
/// var notifyShipping: OnDocumentUpdated<Order> {
///   .init("notifyShipping", at: "orders/{orderId}") { event in
///     guard event.data.before.state != event.data.after.state else { return }
///     event.logger.info("Now \(event.data.after.state)")
///   }
/// }
/// ```
///
/// A write that changes no field causes no event. A document that does not decode is handled as
/// described in `OnDocumentCreated`.
public typealias OnDocumentUpdated<Payload: Sendable> = DocumentFunction<DocumentUpdate<Payload>>

/// A function that runs when a document is deleted.
///
/// `event.data` is the last state of the document.
///
/// ```swift
/// var forget: OnDocumentDeleted<User> {
///   .init("forget", at: "users/{userId}") { event in
///     try await index.remove(try event.params.userId)
///   }
/// }
/// ```
///
/// A document that does not decode is handled as described in `OnDocumentCreated`.
public typealias OnDocumentDeleted<Payload: Sendable> = DocumentFunction<DocumentDeletion<Payload>>

/// A function that runs when a document is created, updated or deleted.
///
/// `event.data` says which of the three happened:
///
/// ```swift
/// var index: OnDocumentWritten<Message> {
///   .init(
///     "index",
///     at: "chats/{chatId}/messages/{messageId}",
///     options: .init(retry: true)
///   ) { event in
///     switch event.data {
///     case .created(let message), .updated(_, let message, _): try await index.add(message)
///     case .deleted: try await index.remove(try event.params.messageId)
///     }
///   }
/// }
/// ```
///
/// A document that does not decode is handled as described in `OnDocumentCreated`.
public typealias OnDocumentWritten<Payload: Sendable> = DocumentFunction<DocumentWrite<Payload>>

/// A kind of changes of documents that runs functions.
///
/// Do not conform other types to this protocol.
public protocol DocumentTrigger: SendableMetatype {
  /// The type as which documents are read.
  associatedtype Payload: Sendable
  /// The data of the events.
  associatedtype Data: Sendable

  /// The conversion of events to their data.
  static var reading: DocumentReading<Payload, Data> { get }
}

/// A kind of document event and the conversion of its documents to the handler's data.
public struct DocumentReading<Payload: Sendable, Data: Sendable>: Sendable {
  let kind: ChangeKind
  /// The conversion, which gets a function that reads a document.
  let read: @Sendable (ReceivedChange, (FirestoreDocument?) throws -> Payload) throws -> Data
}

/// The trigger of `OnDocumentCreated`, whose data is the new document.
public enum DocumentCreation<Payload: Sendable>: DocumentTrigger {
  /// The conversion of events to their data.
  public static var reading: DocumentReading<Payload, Payload> {
    DocumentReading(kind: .created) { change, document in try document(change.after) }
  }
}

/// The trigger of `OnDocumentDeleted`, whose data is the last state of the document.
public enum DocumentDeletion<Payload: Sendable>: DocumentTrigger {
  /// The conversion of events to their data.
  public static var reading: DocumentReading<Payload, Payload> {
    DocumentReading(kind: .deleted) { change, document in try document(change.before) }
  }
}

extension DocumentUpdate: DocumentTrigger {
  /// The conversion of events to their data.
  public static var reading: DocumentReading<Payload, DocumentUpdate> {
    DocumentReading(kind: .updated) { change, document in
      DocumentUpdate(
        before: try document(change.before),
        after: try document(change.after),
        changedFields: change.updateMask
      )
    }
  }
}

extension DocumentWrite: DocumentTrigger {
  /// The conversion of events to their data.
  public static var reading: DocumentReading<Payload, DocumentWrite> {
    DocumentReading(kind: .written) { change, document in
      guard let before = change.before else { return .created(try document(change.after)) }
      guard let after = change.after else { return .deleted(try document(before)) }
      return .updated(
        before: try document(before),
        after: try document(after),
        fields: change.updateMask
      )
    }
  }
}
