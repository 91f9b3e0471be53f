public import FirestoreClient
import Logging
public import PsstModels
import Synchronization

/// Reads stored documents, which may hold anything, for all services.
///
/// A document that cannot be read is the reader's result and no error, so that it stops nobody
/// else's work. What cannot be read is logged by `Logger.current`, once for each version of a
/// document.
public struct DocumentReader: Sendable {
  private let reported = ReportedVersions()

  /// A reader that has logged nothing yet.
  public init() {}

  /// What a document holds, or why it cannot be read; nil when there is no document.
  public func read<Document: StoredDocument>(
    _ snapshot: DocumentSnapshot,
    as type: Document.Type = Document.self
  ) -> Lenient<Document>? {
    // Only a document that is not there is an error here.
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

  /// The most reasons of one line: a list can have thousands of bad elements.
  private static let reasonsMax = 5
}

/// The versions of documents that a line of the log is about.
private final class ReportedVersions: Sendable {
  private struct Version: Hashable {
    var path: String
    var updateTime: Timestamp?
  }

  private let versions = Mutex<Set<Version>>([])
  /// The most versions remembered: a megabyte or two, after which lines may come again.
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
