import Synchronization

/// Remembers the vectors of the latest texts, so that a repeated text asks no provider.
public final class EmbeddingCache: Sendable {
  private struct Key: Hashable {
    var model: EmbeddingModel
    var text: String
  }

  private struct Entries {
    var vectors: [Key: (vector: [Float], used: UInt64)] = [:]
    var uses: UInt64 = 0
  }

  private let entriesMax: Int
  private let entries = Mutex(Entries())

  /// A cache of at most `entriesMax` vectors; 256 of 1536 numbers take 1.5 MB.
  public init(entriesMax: Int = 256) {
    self.entriesMax = max(1, entriesMax)
  }

  /// The vector of a text, from memory or otherwise from the provider.
  ///
  /// Adds what the provider was paid to `usage`. Two simultaneous calls for the same new text both
  /// ask the provider.
  public func vector(
    of text: String,
    by provider: any EmbeddingProvider,
    usage: inout TokenUsage
  ) async throws -> [Float] {
    let key = Key(model: provider.model, text: text)
    if let vector = look(for: key) { return vector }
    let embedded = try await provider.embeddings(of: [text])
    usage += embedded.usage
    guard let vector = embedded.vectors.first else {
      throw ServiceError(.unavailable, "the embedding provider sent no vector")
    }
    keep(vector, for: key)
    return vector
  }

  private func look(for key: Key) -> [Float]? {
    entries.withLock { entries in
      guard let found = entries.vectors[key] else { return nil }
      entries.uses += 1
      entries.vectors[key] = (found.vector, entries.uses)
      return found.vector
    }
  }

  private func keep(_ vector: [Float], for key: Key) {
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
