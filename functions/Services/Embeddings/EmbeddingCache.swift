import Synchronization

/// A cache of the vectors of recent texts, so that a repeated text needs no provider.
///
/// Each worker has its own cache, because a lookup in a shared one would cost more than an
/// embedding.
public final class EmbeddingCache: Sendable {
  private struct Key: Hashable {
    var model: EmbeddingModel
    var text: String
  }

  private struct Entries {
    var vectors: [Key: (vector: [Float], used: UInt64)] = [:]
    var uses: UInt64 = 0
    var underWay: [Key: SharedResult<Embedded>] = [:]
  }

  /// The vector of a text and the tokens it used.
  private struct Embedded: Sendable {
    var vector: [Float]
    var usage: TokenUsage
  }

  /// The source of a vector.
  private enum Source {
    case memory([Float])
    case call(SharedResult<Embedded>, isNew: Bool)
  }

  private let entriesMax: Int
  private let entries = Mutex(Entries())

  /// Creates a cache of at most `entriesMax` vectors.
  ///
  /// 256 vectors of 1536 numbers take 1.5 MB.
  public init(entriesMax: Int = 256) {
    self.entriesMax = max(1, entriesMax)
  }

  /// Returns the vector of a text from memory, or otherwise from the provider.
  ///
  /// Concurrent calls for the same text make one request. The first caller pays, and only that
  /// caller's `usage` increases. Cancellation ends the wait of one caller, but not of the others,
  /// and not the request: it is paid for, so its vector is kept. Throws any error of the provider.
  /// If the first caller's payer has reached a limit, the other callers try again with their own
  /// payers.
  public func vector(
    of text: String,
    by provider: any EmbeddingProvider,
    for payer: Payer,
    usage: inout TokenUsage
  ) async throws -> [Float] {
    let key = Key(model: provider.model, text: text)
    while true {
      switch source(of: key) {
      case .memory(let vector): return vector
      case .call(let shared, isNew: true):
        request(key, by: provider, for: payer, shared)
        let embedded = try await shared.value()
        usage += embedded.usage
        return embedded.vector
      case .call(let shared, isNew: false):
        do {
          return try await shared.value().vector
        } catch let error as ServiceError where error.kind == .limitReached {
          continue
        }
      }
    }
  }

  private func request(
    _ key: Key,
    by provider: any EmbeddingProvider,
    for payer: Payer,
    _ shared: SharedResult<Embedded>
  ) {
    // The cache owns the task, which serves all waiting callers. It ends with the provider's
    // response; timeouts and a small number of attempts limit the wait.
    Task {
      let result: Result<Embedded, any Error>
      do {
        let embedded = try await provider.embeddings(of: [key.text], for: payer)
        guard let vector = embedded.vectors.first else {
          throw ServiceError(.unavailable, "the embedding provider sent no vector")
        }
        result = .success(Embedded(vector: vector, usage: embedded.usage))
      } catch {
        result = .failure(error)
      }
      end(key, result)
      shared.finish(result)
    }
  }

  private func source(of key: Key) -> Source {
    entries.withLock { entries in
      if let found = entries.vectors[key] {
        entries.uses += 1
        entries.vectors[key] = (found.vector, entries.uses)
        return .memory(found.vector)
      }
      if let shared = entries.underWay[key] { return .call(shared, isNew: false) }
      let shared = SharedResult<Embedded>()
      entries.underWay[key] = shared
      return .call(shared, isNew: true)
    }
  }

  /// Ends a request and keeps its vector, replacing the least recently used one if necessary.
  private func end(_ key: Key, _ result: Result<Embedded, any Error>) {
    entries.withLock { entries in
      entries.underWay[key] = nil
      guard case .success(let embedded) = result else { return }
      entries.uses += 1
      entries.vectors[key] = (embedded.vector, entries.uses)
      while entries.vectors.count > entriesMax,
        let oldest = entries.vectors.min(by: { $0.value.used < $1.value.used })
      {
        entries.vectors[oldest.key] = nil
      }
    }
  }
}
