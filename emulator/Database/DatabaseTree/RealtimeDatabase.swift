package import DatabaseModel
import DatabaseRules
package import DocumentModel
package import EventLog
package import Logging
import ServiceLifecycle
package import StorageEngine
import Synchronization

/// All instances of the Realtime Database, each with a tree, rules and clients of its own.
///
/// `run` processes writes and sessions, and must run for any of them to be answered. It first
/// applies what the clients of an earlier process left for their disconnection.
package final class RealtimeDatabase: Service, Sendable {
  /// What the instances share.
  struct Settings: Sendable {
    var project: String
    var now: @Sendable () -> Timestamp
    var captureDepth: @Sendable (_ instance: String, _ path: DatabasePath) -> Int?
    var logger: Logger
    /// The size up to which a value is read in its turn, while other requests wait.
    var shortReadBytesMax: Int
    let decisions = DecisionLog()

    /// Keeps a decision of the rules and logs a refusal with its reasons; throws if it refuses.
    func obey(_ recent: RecentDatabaseDecision) throws(DatabaseError) {
      decisions.add(recent)
      guard !recent.decision.isAllowed else { return }
      // A line for the person who reads along, as for Firestore's rules.
      logger.notice(
        "\(recent.method) \(recent.path) is denied: \(recent.decision.summary(file: recent.file))"
      )
      throw .permissionDenied
    }
  }

  private struct State {
    var instances: [String: DatabaseInstance] = [:]
    var isStopped = false
  }

  /// The maximum number of instances, because anybody can name one.
  package static let instancesMax = 1000

  private let storage: any OrderedStorage
  private let tailer: EventTailer
  private let settings: Settings
  private let state = Mutex(State())
  /// The instances that `run` has yet to begin with; bounded by `instancesMax`.
  private let added = AsyncStream.makeStream(
    of: DatabaseInstance.self,
    bufferingPolicy: .bufferingOldest(instancesMax)
  )

  /// Creates the instances over a store.
  ///
  /// `captureDepth` returns the number of keys of the highest node that a function may watch when a
  /// write replaces the node at a path; nil if no function watches anything there.
  package init(
    storage: any OrderedStorage,
    tailer: EventTailer,
    project: String,
    now: @escaping @Sendable () -> Timestamp,
    captureDepth: @escaping @Sendable (_ instance: String, _ path: DatabasePath) -> Int?,
    logger: Logger,
    shortReadBytesMax: Int = 1 << 20
  ) {
    self.storage = storage
    self.tailer = tailer
    settings = Settings(
      project: project,
      now: now,
      captureDepth: captureDepth,
      logger: logger,
      shortReadBytesMax: shortReadBytesMax
    )
  }

  /// Returns the name of a project's first instance, which clients without a name of one use.
  package static func defaultInstance(of project: String) -> String { "\(project)-default-rtdb" }

  /// The latest decisions of the rules, most recent first.
  package var decisions: [RecentDatabaseDecision] { settings.decisions.latestFirst }

  /// The suite's time.
  package var time: Timestamp { settings.now() }

  /// Returns an instance by name, which exists as soon as something uses it.
  ///
  /// Throws a `DatabaseError` for a name that is not valid, and if there are too many instances.
  package func instance(_ name: String) throws(DatabaseError) -> DatabaseInstance {
    guard Self.isValid(name) else {
      throw DatabaseError(.invalid, "The name of a database may have a-z, 0-9 and hyphens.")
    }
    let (instance, isStopped) = state.withLock { state -> (DatabaseInstance?, Bool) in
      if let instance = state.instances[name] { return (instance, state.isStopped) }
      guard !state.isStopped, state.instances.count < Self.instancesMax else {
        return (nil, state.isStopped)
      }
      let instance = DatabaseInstance(
        name: name,
        storage: storage,
        tailer: tailer,
        settings: settings
      )
      state.instances[name] = instance
      added.continuation.yield(instance)
      return (instance, false)
    }
    guard let instance else {
      if isStopped { throw .stopping }
      throw DatabaseError(.tooBig, "There are more than \(Self.instancesMax) databases.")
    }
    return instance
  }

  /// Returns true for a text that can be the name of an instance.
  package static func isValid(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 128
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  /// The names of the instances that have data or are in use, sorted.
  package func instanceNames() async throws -> [String] {
    let stored = try await storage.read {
      try DatabaseTree.instanceNames(NodeRows.keyspace, in: $0)
    }
    return Set(stored).union(all.map(\.name)).sorted()
  }

  /// The numbers of the open sessions and listeners, by instance.
  package var counts: [String: (sessions: Int, listeners: Int)] {
    Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0.counts) })
  }

  private var all: [DatabaseInstance] { state.withLock { Array($0.instances.values) } }

  package func run() async throws {
    let left = try await storage.read { snapshot in
      try DisconnectRows.instances(in: snapshot).map { name in
        (name, try DisconnectRows.all(instance: name, in: snapshot))
      }
    }
    for (name, rows) in left { try instance(name).endEarlierSessions(rows) }
    await withGracefulShutdownHandler {
      await withDiscardingTaskGroup { group in
        for await instance in added.stream { group.addTask { await instance.run() } }
      }
    } onGracefulShutdown: {
      self.stop()
    }
    // A cancelled task has not begun with the instances that were added last.
    stop()
    for instance in all { instance.refuseAll() }
  }

  private func stop() {
    state.withLock { $0.isStopped = true }
    for instance in all { instance.stop() }
    added.continuation.finish()
  }
}
