import PsstServices
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
  }

  /// The vector of a text and the tokens it used.
  private struct Embedded: Sendable {
    var vector: [Float]
    var usage: TokenUsage
  }

  private let entriesMax: Int
  private let entries = Mutex(Entries())
  private let calls = SharedCalls<Key, Embedded>()

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
    if let vector = known(key) { return vector }
    let (embedded, isOwn) = try await calls.value(of: key) { [self] in
      // Another call may have ended since the vector was not found.
      if let vector = known(key) { return Embedded(vector: vector, usage: TokenUsage()) }
      let embedded = try await provider.embeddings(of: [text], for: payer)
      guard let vector = embedded.vectors.first else {
        throw ServiceError(.unavailable, "the embedding provider sent no vector")
      }
      keep(vector, of: key)
      return Embedded(vector: vector, usage: embedded.usage)
    }
    if isOwn { usage += embedded.usage }
    return embedded.vector
  }

  private func known(_ key: Key) -> [Float]? {
    entries.withLock { entries in
      guard let found = entries.vectors[key] else { return nil }
      entries.uses += 1
      entries.vectors[key] = (found.vector, entries.uses)
      return found.vector
    }
  }

  /// Keeps a vector, replacing the least recently used one if necessary.
  private func keep(_ vector: [Float], of key: Key) {
    entries.withLock { entries in
      entries.uses += 1
      entries.vectors[key] = (vector, entries.uses)
      while entries.vectors.count > entriesMax,
        let oldest = entries.vectors.min(by: { $0.value.used < $1.value.used })
      {
        entries.vectors[oldest.key] = nil
      }
    }
  }
}
