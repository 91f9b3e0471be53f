import Synchronization

/// The progress of an import of documents, which may take minutes.
package final class ImportProgress: Sendable {
  /// The two passes over an export.
  package enum Phase: String, Sendable, Codable {
    case checking, writing
  }

  /// The part of a pass that is done.
  package struct Part: Sendable, Hashable, Codable {
    package var phase: Phase
    package var bytes: Int
    package var bytesTotal: Int

    /// The part in words, such as `checking, 40%`.
    package var description: String {
      "\(phase.rawValue), \(bytesTotal == 0 ? 100 : bytes * 100 / bytesTotal)%"
    }
  }

  private let state = Mutex<Part?>(nil)

  /// The part that is done; nil while none are imported.
  package var part: Part? { state.withLock { $0 } }

  func set(_ phase: Phase, _ bytes: Int, of bytesTotal: Int) {
    state.withLock { $0 = Part(phase: phase, bytes: bytes, bytesTotal: bytesTotal) }
  }

  func end() {
    state.withLock { $0 = nil }
  }
}
