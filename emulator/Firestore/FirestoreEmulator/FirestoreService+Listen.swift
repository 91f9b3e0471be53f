import DocumentModel
package import DocumentStore
package import FirestoreProtos
package import FirestoreWire
package import Identity
import StatusCodes
import SwiftProtobuf

extension FirestoreService {
  /// Serves a client's listener until its requests end.
  ///
  /// `next` returns one request after the other, and nil after the last. `resourcePrefix` is the
  /// header in which clients name the database outside of messages. An error in one target ends
  /// that target; an error in the stream is thrown. Responses are sent one batch at a time; a slow
  /// `send` delays no other client. Writes of `client` wait for these responses.
  package func listen(
    to next: @escaping @Sendable () async throws -> Google_Firestore_V1_ListenRequest?,
    resourcePrefix: String?,
    auth: AuthContext,
    client: ListenClient? = nil,
    _ send: ([ListenReply]) async throws -> Void
  ) async throws {
    guard let first = try await next() else { return }
    let database = try streamDatabase(first.database, resourcePrefix)
    let memory = budget.map(ListenerMemory.init)
    let session = store.openListener(
      database: database,
      auth: auth,
      client: client,
      memory: memory
    )
    memory?.serve(session)
    defer { session.close() }
    try await withThrowingTaskGroup(of: Void.self) { group in
      // From here on the client takes nothing more, so tasks that wait for room must end.
      defer { session.close() }
      group.addTask {
        // The end of the requests ends the call.
        defer { session.close() }
        try await self.take(first, session, database)
        while let request = try await next() {
          try await self.take(request, session, database)
        }
      }
      while let events = await session.next() { try await Self.send(events, by: send) }
      session.close()
      group.cancelAll()
      try await group.waitForAll()
    }
  }

  /// Sends events a few at a time, so that large documents are not all encoded at once.
  private static func send(
    _ events: [ListenEvent],
    by send: ([ListenReply]) async throws -> Void
  ) async throws {
    var replies: [ListenReply] = []
    var bytes = 0
    for event in events {
      let reply = ListenReply(event)
      if case .document(_, let encoded, _, _) = reply { bytes += encoded.count }
      replies.append(reply)
      guard bytes >= encodedBytesMax else { continue }
      try await send(replies)
      (replies, bytes) = ([], 0)
    }
    if !replies.isEmpty { try await send(replies) }
  }

  /// The bytes of encoded documents that are sent at a time.
  private static let encodedBytesMax = 256 << 10

  /// Returns the database of a stream, named by its first message or by a header.
  func streamDatabase(_ name: String, _ resourcePrefix: String?) throws -> DatabaseName {
    guard name.isEmpty else { return try database(name) }
    guard let resourcePrefix, !resourcePrefix.isEmpty else {
      throw StatusError.invalidArgument("The first message of a stream must name its database.")
    }
    return try database(resourcePrefix)
  }

  /// Throws if a later message of a stream names another database.
  func checkStream(_ name: String, is database: DatabaseName) throws {
    guard name.isEmpty || name == database.description else {
      throw StatusError.invalidArgument("A stream's messages must all name the same database.")
    }
  }

  private func take(
    _ request: Google_Firestore_V1_ListenRequest,
    _ session: ListenSession,
    _ database: DatabaseName
  ) async throws {
    try checkStream(request.database, is: database)
    switch request.targetChange {
    case .addTarget(let proto):
      guard proto.targetID >= 0 else {
        throw StatusError.invalidArgument("A target's id must not be negative.")
      }
      do {
        await session.add(try listenRequest(proto, in: database), id: proto.targetID)
      } catch {
        let reported = publicError(for: error)
        await session.refuse(
          proto.targetID,
          StatusError(reported.statusCode, reported.statusMessage)
        )
      }
    case .removeTarget(let id): await session.remove(id)
    case nil:
      throw StatusError.invalidArgument("A message must add a target or remove one.")
    }
  }

  private func listenRequest(
    _ proto: Google_Firestore_V1_Target,
    in database: DatabaseName
  ) throws -> ListenRequest {
    let target: ListenTarget
    switch proto.targetType {
    case .query(let query):
      guard case .structuredQuery(let structured) = query.queryType else {
        throw StatusError.invalidArgument("only structured queries are supported")
      }
      guard !structured.hasFindNearest else {
        throw StatusError.invalidArgument("A search for nearest vectors cannot be listened to.")
      }
      target = .query(try WireFormat.query(structured, parent: query.parent))
    case .documents(let documents):
      target = .documents(
        try documents.documents.map { try documentName($0, in: database) }
      )
    case nil:
      throw StatusError.invalidArgument("A target must be a query or documents.")
    }
    let resumePoint: ResumePoint? =
      switch proto.resumeType {
      case .resumeToken(let token): token.isEmpty ? nil : .token(Array(token))
      case .readTime(let time): .readTime(try WireFormat.timestamp(time))
      case nil: nil
      }
    return ListenRequest(
      target,
      resumePoint: resumePoint,
      expectedCount: proto.hasExpectedCount ? Int(proto.expectedCount.value) : nil,
      isOnce: proto.once
    )
  }
}

extension ListenReply {
  fileprivate init(_ event: ListenEvent) {
    switch event {
    case .added(let id): self = .target(.add, [id])
    case .removed(let id, let cause): self = .target(.remove, [id], cause: cause)
    case .reset(let id): self = .target(.reset, [id])
    case .current(let id, let readTime, let token):
      self = .target(.current, [id], token: token, readTime: readTime)
    case .snapshot(let readTime, let token):
      self = .target(.noChange, [], token: token, readTime: readTime)
    case .document(let document, let targets, let removedTargets):
      self = .document(
        document.document,
        encoded: document.encoded(by: Self.encode),
        targets: targets,
        removedTargets: removedTargets
      )
    case .deleted(let name, let removedTargets, let readTime):
      self = .deleted(name, removedTargets: removedTargets, readTime: readTime)
    case .departed(let name, let removedTargets, let readTime):
      self = .removed(name, removedTargets: removedTargets, readTime: readTime)
    case .filter(let id, let count, let names):
      self = .filter(
        id,
        count: count,
        bitmap: names.bitmap,
        padding: names.padding,
        hashCount: names.hashCount
      )
    }
  }
}
