// One declaration for each kind of event, twice: for documents that decode as a type, and for those
// who want the stored document with its times and raw fields.

/// Declares a function that runs when a document is created: `event.data` is the document.
///
/// `pattern` is a document's path with captures, such as `chats/{chatId}/messages/{messageId}`. The
/// document is decoded before the handler runs; one that does not decode is a permanent failure,
/// logged with the path of the field at fault.
public func onDocumentCreated<Payload: Decodable & Sendable>(
  _ name: String,
  at pattern: String,
  as type: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentEvent<Payload>) async throws -> Void
) -> some CloudFunction<DocumentEvent<Payload>, Void> {
  DocumentFunction(name, pattern, options, .created(.decoded), handler)
}

/// Declares a function that runs when a document is created, on the document as it is stored.
public func onDocumentCreated(
  _ name: String,
  at pattern: String,
  as type: Document.Type = Document.self,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentEvent<Document>) async throws -> Void
) -> some CloudFunction<DocumentEvent<Document>, Void> {
  DocumentFunction(name, pattern, options, .created(.stored), handler)
}

/// Declares a function that runs when a document's fields change: `event.data` has both versions.
///
/// See `onDocumentCreated` for the pattern and for documents that do not decode.
public func onDocumentUpdated<Payload: Decodable & Sendable>(
  _ name: String,
  at pattern: String,
  as type: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentEvent<DocumentUpdate<Payload>>) async throws -> Void
) -> some CloudFunction<DocumentEvent<DocumentUpdate<Payload>>, Void> {
  DocumentFunction(name, pattern, options, .updated(.decoded), handler)
}

/// Declares a function that runs when a document's fields change, on the documents as stored.
public func onDocumentUpdated(
  _ name: String,
  at pattern: String,
  as type: Document.Type = Document.self,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentEvent<DocumentUpdate<Document>>) async throws -> Void
) -> some CloudFunction<DocumentEvent<DocumentUpdate<Document>>, Void> {
  DocumentFunction(name, pattern, options, .updated(.stored), handler)
}

/// Declares a function that runs when a document is deleted: `event.data` is what it was.
///
/// See `onDocumentCreated` for the pattern and for documents that do not decode.
public func onDocumentDeleted<Payload: Decodable & Sendable>(
  _ name: String,
  at pattern: String,
  as type: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentEvent<Payload>) async throws -> Void
) -> some CloudFunction<DocumentEvent<Payload>, Void> {
  DocumentFunction(name, pattern, options, .deleted(.decoded), handler)
}

/// Declares a function that runs when a document is deleted, on the document as it was stored.
public func onDocumentDeleted(
  _ name: String,
  at pattern: String,
  as type: Document.Type = Document.self,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentEvent<Document>) async throws -> Void
) -> some CloudFunction<DocumentEvent<Document>, Void> {
  DocumentFunction(name, pattern, options, .deleted(.stored), handler)
}

/// Declares a function that runs when a document is created, updated or deleted.
///
/// `event.data` is a `Change`, to be switched over. See `onDocumentCreated` for the pattern and for
/// documents that do not decode.
public func onDocumentWritten<Payload: Decodable & Sendable>(
  _ name: String,
  at pattern: String,
  as type: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentEvent<Change<Payload>>) async throws -> Void
) -> some CloudFunction<DocumentEvent<Change<Payload>>, Void> {
  DocumentFunction(name, pattern, options, .written(.decoded), handler)
}

/// Declares a function that runs on every write of a document, on the documents as stored.
public func onDocumentWritten(
  _ name: String,
  at pattern: String,
  as type: Document.Type = Document.self,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentEvent<Change<Document>>) async throws -> Void
) -> some CloudFunction<DocumentEvent<Change<Document>>, Void> {
  DocumentFunction(name, pattern, options, .written(.stored), handler)
}
