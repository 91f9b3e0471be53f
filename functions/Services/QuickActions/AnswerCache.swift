import FirestoreClient
import Logging
import Synchronization

/// A model's answers, each kept in a document until what the model is asked about changes.
///
/// An answer is used again only for the very same request to the same model, which has in it all
/// that the answer follows from. So nothing has to be removed when a message is edited or deleted:
/// the next request is another one, and its answer takes the place of the old one.
final class AnswerCache<Output: Codable & Sendable>: Sendable {
  /// An answer, and what it cost.
  struct Answer: Sendable {
    var output: Output
    /// Whether no model was asked for this caller.
    var isCached: Bool
    /// What this caller pays.
    var usage: TokenUsage
  }

  /// An answer as it is stored, in a document that only the server reads and writes.
  private struct Stored: Codable, Sendable {
    /// A hash of the model and the request.
    var request: String
    var answer: Output
  }

  private struct Key: Hashable {
    var path: String
    var request: String
  }

  private let underWay = Mutex<[Key: SharedResult<Answer>]>([:])

  /// The answer to a request, from its document or otherwise from the model.
  ///
  /// Simultaneous calls for the same request ask the model once, and the first caller pays.
  /// Cancellation ends one caller's wait, but neither the others' nor the call of the model: it is
  /// paid for, so its answer is kept. Throws `FirestoreError`, and `ServiceError` as
  /// `ChatModel.answer` does; nobody fails for another payer's limit.
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
    while true {
      let (shared, isNew) = underWay.withLock { underWay in
        if let shared = underWay[key] { return (shared, false) }
        let shared = SharedResult<Answer>()
        underWay[key] = shared
        return (shared, true)
      }
      if isNew {
        // The cache owns the task, which serves callers that come and go. It ends with the model's
        // answer, for which time-outs and few attempts bound the wait.
        Task {
          let result: Result<Answer, any Error>
          do {
            result = .success(try await ask(messages, schema, document, key.request, model, payer))
          } catch {
            result = .failure(error)
          }
          underWay.withLock { $0[key] = nil }
          shared.finish(result)
        }
        return try await shared.value()
      }
      do {
        let answer = try await shared.value()
        return Answer(output: answer.output, isCached: true, usage: TokenUsage())
      } catch let error as ServiceError where error.kind == .limitReached {
        continue
      }
    }
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
      // The answer is good and paid for; only the next caller pays again.
      Logger.current.warning("An answer is not kept", metadata: ["reason": "\(error)"])
    }
    return Answer(output: answer.output, isCached: false, usage: answer.usage)
  }
}
