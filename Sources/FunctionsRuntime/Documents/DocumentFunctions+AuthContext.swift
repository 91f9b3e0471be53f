// The declarations of `DocumentFunctions.swift` again, for those who want to know who did it.

/// Declares a function that runs when a document is created, and tells who created it.
///
/// Besides `event.auth` all is as in `onDocumentCreated`.
public func onDocumentCreatedWithAuthContext<Payload: Decodable & Sendable>(
  _ name: String,
  at pattern: String,
  as type: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentAuthEvent<Payload>) async throws -> Void
) -> some CloudFunction<DocumentAuthEvent<Payload>, Void> {
  DocumentFunction(name, pattern, options, .created(.decoded), handler)
}

/// Declares the same on documents as they are stored.
public func onDocumentCreatedWithAuthContext(
  _ name: String,
  at pattern: String,
  as type: Document.Type = Document.self,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentAuthEvent<Document>) async throws -> Void
) -> some CloudFunction<DocumentAuthEvent<Document>, Void> {
  DocumentFunction(name, pattern, options, .created(.stored), handler)
}

/// Declares a function that runs when a document's fields change, and tells who changed them.
///
/// Besides `event.auth` all is as in `onDocumentUpdated`.
public func onDocumentUpdatedWithAuthContext<Payload: Decodable & Sendable>(
  _ name: String,
  at pattern: String,
  as type: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentAuthEvent<DocumentUpdate<Payload>>) async throws -> Void
) -> some CloudFunction<DocumentAuthEvent<DocumentUpdate<Payload>>, Void> {
  DocumentFunction(name, pattern, options, .updated(.decoded), handler)
}

/// Declares the same on documents as they are stored.
public func onDocumentUpdatedWithAuthContext(
  _ name: String,
  at pattern: String,
  as type: Document.Type = Document.self,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentAuthEvent<DocumentUpdate<Document>>) async throws -> Void
) -> some CloudFunction<DocumentAuthEvent<DocumentUpdate<Document>>, Void> {
  DocumentFunction(name, pattern, options, .updated(.stored), handler)
}

/// Declares a function that runs when a document is deleted, and tells who deleted it.
///
/// Besides `event.auth` all is as in `onDocumentDeleted`.
public func onDocumentDeletedWithAuthContext<Payload: Decodable & Sendable>(
  _ name: String,
  at pattern: String,
  as type: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentAuthEvent<Payload>) async throws -> Void
) -> some CloudFunction<DocumentAuthEvent<Payload>, Void> {
  DocumentFunction(name, pattern, options, .deleted(.decoded), handler)
}

/// Declares the same on documents as they are stored.
public func onDocumentDeletedWithAuthContext(
  _ name: String,
  at pattern: String,
  as type: Document.Type = Document.self,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentAuthEvent<Document>) async throws -> Void
) -> some CloudFunction<DocumentAuthEvent<Document>, Void> {
  DocumentFunction(name, pattern, options, .deleted(.stored), handler)
}

/// Declares a function that runs on every write of a document, and tells whose it was.
///
/// Besides `event.auth` all is as in `onDocumentWritten`.
public func onDocumentWrittenWithAuthContext<Payload: Decodable & Sendable>(
  _ name: String,
  at pattern: String,
  as type: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentAuthEvent<Change<Payload>>) async throws -> Void
) -> some CloudFunction<DocumentAuthEvent<Change<Payload>>, Void> {
  DocumentFunction(name, pattern, options, .written(.decoded), handler)
}

/// Declares the same on documents as they are stored.
public func onDocumentWrittenWithAuthContext(
  _ name: String,
  at pattern: String,
  as type: Document.Type = Document.self,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (DocumentAuthEvent<Change<Document>>) async throws -> Void
) -> some CloudFunction<DocumentAuthEvent<Change<Document>>, Void> {
  DocumentFunction(name, pattern, options, .written(.stored), handler)
}
