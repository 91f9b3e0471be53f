public import FirestoreClient
import Logging
public import PsstModels
import Synchronization

/// The reader of stored documents, used by all services.
///
/// An unreadable document is returned as a result instead of thrown as an error, so that it does
/// not stop other work. Anything unreadable is logged by `Logger.current`, once for each version of
/// a document.
public struct DocumentReader: Sendable {
  private let reported = ReportedVersions()

  /// Creates a reader that has not logged anything yet.
  public init() {}

  /// Returns a document's contents, or the reason that it cannot be read.
  ///
  /// The result is nil if the document does not exist.
  public func read<Document: StoredDocument>(
    _ snapshot: DocumentSnapshot,
    as type: Document.Type = Document.self
  ) -> Lenient<Document>? {
    // The only error here is a missing document.
    guard let read = try? snapshot.data(as: Lenient<Document>.self) else { return nil }
    switch read {
    case .readable(let document) where document.unreadable.isEmpty: break
    case .readable(let document): report("Fields cannot be read", document.unreadable, of: snapshot)
    case .unreadable(let error): report("A document cannot be read", [error], of: snapshot)
    }
    return read
  }

  private func report(
    _ message: Logger.Message,
    _ errors: [ValueCodingError],
    of snapshot: DocumentSnapshot
  ) {
    guard reported.insert(snapshot) else { return }
    let reasons = errors.prefix(Self.reasonsMax).map { "\($0)" }.joined(separator: "; ")
    Logger.current.warning(
      message,
      metadata: [
        "document.path": "\(snapshot.reference.path)", "reason": "\(reasons)",
        "reasons.count": "\(errors.count)",
      ]
    )
  }

  /// The maximum number of reasons per log line.
  ///
  /// A list can have thousands of invalid elements.
  private static let reasonsMax = 5
}

/// The versions of documents that have been logged.
private final class ReportedVersions: Sendable {
  private struct Version: Hashable {
    var path: String
    var updateTime: Timestamp?
  }

  private let versions = Mutex<Set<Version>>([])
  /// The maximum number of versions remembered, one to two megabytes.
  ///
  /// After that the set is emptied, and versions may be logged again.
  private static let countMax = 10_000

  func insert(_ snapshot: DocumentSnapshot) -> Bool {
    versions.withLock { versions in
      if versions.count == Self.countMax { versions = [] }
      return versions.insert(
        Version(path: snapshot.reference.path, updateTime: snapshot.updateTime)
      ).inserted
    }
  }
}
