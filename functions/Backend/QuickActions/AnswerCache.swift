import FirestoreClient
import Logging
import PsstServices

/// A cache of a model's answers, each stored in a document until its request changes.
///
/// An answer is reused only for an identical request to the same model, and the request contains
/// everything that the answer depends on. Nothing has to be removed when a message is edited or
/// deleted: the next request is different, and its answer replaces the old one.
final class AnswerCache<Output: Codable & Sendable>: Sendable {
  /// An answer and the tokens it used.
  struct Answer: Sendable {
    var output: Output
    /// True if no model was asked for this caller.
    var isCached: Bool
    /// The usage charged to this caller.
    var usage: TokenUsage
  }

  /// A stored answer, in a document that only the server reads and writes.
  private struct Stored: Codable, Sendable {
    /// A hash of the model and the request.
    var request: String
    var answer: Output
  }

  private struct Key: Hashable {
    var path: String
    var request: String
  }

  private let calls = SharedCalls<Key, Answer>()

  /// Returns the answer to a request from its document, or otherwise from the model.
  ///
  /// Concurrent calls for the same request ask the model once, and the first caller pays.
  /// Cancellation ends the wait of one caller, but not of the others, and not the call of the
  /// model: it is paid for, so its answer is kept. Throws `FirestoreError`, and `ServiceError` as
  /// `ChatModel.answer` does. If the first caller's payer has reached a limit, the other callers
  /// try again with their own payers.
  func answer(
    to messages: [ChatMessage],
    as schema: JSONSchema,
    keptIn document: DocumentReference,
    by model: any ChatModel,
    for payer: Payer
  ) async throws -> Answer {
    let key = Key(
      path: document.path,
      request: ContentHash.of([model.name, schema.name] + messages.map(\.content))
    )
    let (answer, isOwn) = try await calls.value(of: key) { [self] in
      try await ask(messages, schema, document, key.request, model, payer)
    }
    return isOwn ? answer : Answer(output: answer.output, isCached: true, usage: TokenUsage())
  }

  private func ask(
    _ messages: [ChatMessage],
    _ schema: JSONSchema,
    _ document: DocumentReference,
    _ request: String,
    _ model: any ChatModel,
    _ payer: Payer
  ) async throws -> Answer {
    let snapshot = try await document.get()
    if snapshot.exists, let stored = try snapshot.data(as: Lenient<Stored>.self).value,
      stored.request == request
    {
      return Answer(output: stored.answer, isCached: true, usage: TokenUsage())
    }
    let answer = try await model.answer(messages, as: schema, Output.self, for: payer)
    do {
      try await document.set(Stored(request: request, answer: answer.output))
    } catch let error as FirestoreError {
      // The answer is valid and paid for. Only the next caller pays again.
      Logger.current.warning("An answer is not kept", metadata: ["reason": "\(error)"])
    }
    return Answer(output: answer.output, isCached: false, usage: answer.usage)
  }
}
