public import Foundation
import Logging
public import PsstModels
import Synchronization

/// The place where messages wait for their delivery, also while the app does not run.
///
/// One device has one store for each user. Its methods may block, and are called in turn.
public protocol MessageQueueStore: Sendable {
  /// Returns the stored messages in the order of their ids.
  func load() throws -> [QueuedMessage]
  /// Stores a message, or replaces the one with the same id.
  func save(_ message: QueuedMessage) throws
  /// Removes the message with an id, if there is one.
  func remove(_ id: String) throws
}

/// A store that keeps messages in memory, for as long as the process runs.
public final class MemoryMessageQueueStore: MessageQueueStore {
  private let messages = Mutex<[String: QueuedMessage]>([:])

  /// Creates an empty store.
  public init() {}

  /// Returns the messages in the order of their ids.
  public func load() -> [QueuedMessage] {
    messages.withLock { $0.values.sorted { $0.id < $1.id } }
  }

  /// Stores a message.
  public func save(_ message: QueuedMessage) {
    messages.withLock { $0[message.id] = message }
  }

  /// Removes a message.
  public func remove(_ id: String) {
    _ = messages.withLock { $0.removeValue(forKey: id) }
  }
}

/// A store that keeps each message in a file of its own.
///
/// A stored message survives the end of the process. A file that cannot be read, for example after
/// damage to the disk, is set aside and logged; it stops no other message.
public struct FileMessageQueueStore: MessageQueueStore {
  private let folder: URL

  /// Creates a store in a folder below the given one, for messages of one user.
  ///
  /// The folder is created with the first message.
  public init(folder: URL, uid: String) {
    self.folder = folder.appending(path: ContentHash.of([uid]), directoryHint: .isDirectory)
  }

  /// Returns the messages in the order of their ids.
  ///
  /// Throws if the folder exists and cannot be read.
  public func load() throws -> [QueuedMessage] {
    let files = FileManager.default
    guard files.fileExists(atPath: folder.path) else { return [] }
    let all = try files.contentsOfDirectory(atPath: folder.path)
    for draft in all where draft.hasSuffix(Self.draftSuffix) {
      // Left by a process that ended while it stored a message, which `save` has not confirmed.
      try? files.removeItem(at: folder.appending(path: draft))
    }
    let names = all.filter { $0.hasSuffix(Self.suffix) }.sorted()
    return names.compactMap { name in
      let file = folder.appending(path: name)
      do {
        let message = try JSONDecoder().decode(
          StoredMessage.self,
          from: try Data(contentsOf: file)
        ).message
        // The name decides about the order, and where the message is removed.
        guard name == message.id + Self.suffix else { throw CocoaError(.fileReadCorruptFile) }
        return message
      } catch {
        Logger.current.error(
          "A queued message cannot be read and is set aside",
          metadata: ["file": "\(file.path)", "reason": "\(error)"]
        )
        // If it cannot be renamed, it is reported again at the next start.
        try? files.moveItem(at: file, to: file.appendingPathExtension("unreadable"))
        return nil
      }
    }
  }

  /// Stores a message; throws if it is not certain to be on the disk.
  public func save(_ message: QueuedMessage) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appending(path: message.id + Self.suffix)
    let draft = folder.appending(path: message.id + Self.draftSuffix)
    try JSONEncoder().encode(StoredMessage(message: message)).write(to: draft)
    let handle = try FileHandle(forWritingTo: draft)
    try handle.synchronize()
    try handle.close()
    // Unlike `moveItem`, this replaces an earlier version in one step.
    guard rename(draft.path, file.path) == 0 else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
  }

  /// Removes a message.
  public func remove(_ id: String) throws {
    do {
      try FileManager.default.removeItem(at: folder.appending(path: id + Self.suffix))
    } catch CocoaError.fileNoSuchFile {
      return
    }
  }

  private static let suffix = ".json"
  private static let draftSuffix = ".draft"
}

/// The form of a message in a file.
private struct StoredMessage: Codable {
  var message: QueuedMessage
}
