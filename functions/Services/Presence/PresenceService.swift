public import DatabaseClient
public import PsstModels
import AsyncAlgorithms
import Synchronization

/// Who is online: the signed-in user, and others.
///
/// ```swift
/// try await presence.goOnline()
/// for try await carl in presence.observePresence(of: "carl") { show(carl) }
/// ```
///
/// A user is online while one of their devices is connected. The server notices the end of a
/// connection, also of an app that was killed, and writes its own time.
public final class PresenceService: Sendable {
  private let database: Database
  private let uid: String
  private let online = Mutex<Task<Void, Never>?>(nil)

  /// Creates a service for the user with the given uid, as whom `database` acts.
  public init(database: Database, uid: String) {
    self.database = database
    self.uid = uid
  }

  deinit { online.withLock { $0?.cancel() } }

  // MARK: The user

  /// Keeps the user online on this device until `goOffline`, and returns once they are.
  ///
  /// When the connection is lost, the user goes offline, and online again as soon as it is back.
  /// Throws `PresenceError` if the server refuses.
  public func goOnline() async throws {
    // Only the first element counts.
    let (firsts, first) = AsyncThrowingStream.makeStream(
      of: Void.self,
      bufferingPolicy: .bufferingNewest(1)
    )
    let (database, uid) = (database, uid)
    // Owned by the service, and ends with it, with `goOffline` or by a refusal.
    let task = Task {
      do {
        try await Self.stayOnline(database, uid) { first.yield() }
        first.finish()
      } catch {
        first.finish(throwing: error)
      }
    }
    let earlier = online.withLock { online in
      defer { online = task }
      return online
    }
    earlier?.cancel()
    do {
      for try await _ in firsts { return }
    } catch {
      throw try PresenceError.of(error)
    }
  }

  /// Ends the user's presence on this device, which the server notices at once.
  public func goOffline() async {
    let task = online.withLock { online in
      defer { online = nil }
      return online
    }
    task?.cancel()
    await task?.value
  }

  private static func stayOnline(
    _ database: Database,
    _ uid: String,
    _ isOnline: @escaping @Sendable () -> Void
  ) async throws {
    let user = database.reference(UserPresence.collection).child(uid)
    try await database.whileConnected { connection in
      // Each connection has a key of its own: the end of a lost one comes late, when the next one
      // may have begun.
      let device = "devices/\(user.push().key ?? "")"
      let time = ServerValue.timestamp
      try await connection.onDisconnect(
        update: user,
        with: [device: nil, "online": false, "lastSeen": time]
      )
      try await connection.update(user, with: [device: time, "online": true, "lastSeen": time])
      isOnline()
      // Another device of the user that ends says offline, although this one is there.
      for try await snapshot in user.child("online").observe() {
        // What is no flag is replaced, too.
        let isOnline = try? snapshot.data(Bool.self)
        if isOnline != true { try await connection.set(user.child("online"), to: true) }
      }
    }
  }

  // MARK: Others

  /// The presence of a user now and after every change; offline for one who was never seen.
  public func observePresence(of uid: String) -> Updates<UserPresence> {
    Updates(
      database.reference(UserPresence.collection).child(uid).observe(),
      errors: PresenceError.self
    ) { Self.presence(in: $0) }
  }

  /// The presences of the members of a group now and after every change.
  ///
  /// The first 100 members count, each of which is observed separately.
  public func observePresence(ofGroup members: [String]) -> Updates<GroupPresence> {
    let places = database.reference(UserPresence.collection)
    let uids = Array(Set(members).sorted().prefix(Self.membersMax))
    let changes = MemberChanges(uids: uids) { places.child($0).observe() }
    return Updates(changes, errors: PresenceError.self) {
      var group = GroupPresence([:])
      var known: Set<String> = []
      return { snapshot in
        let uid = snapshot.key ?? ""
        known.insert(uid)
        group.members[uid] = snapshot.exists ? Self.presence(in: snapshot) : nil
        return known.count == uids.count ? group : nil
      }
    }
  }

  private static func presence(in snapshot: DatabaseSnapshot) -> UserPresence {
    // A presence that cannot be read is that of a user who is offline.
    (try? snapshot.data(UserPresence.self)) ?? UserPresence(online: false)
  }

  private static let membersMax = 100
}

/// The values of several places, in the order in which they arrive.
private struct MemberChanges: AsyncSequence, Sendable {
  typealias Element = DatabaseSnapshot

  let uids: [String]
  let observe: @Sendable (String) -> ValueSnapshots

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(Observer(self)) }

  struct AsyncIterator: AsyncIteratorProtocol {
    private let observer: Observer

    init(_ observer: Observer) { self.observer = observer }

    mutating func next() async throws -> DatabaseSnapshot? { try await observer.next() }
  }

  /// The observations of one loop, which end when it is released.
  final class Observer: Sendable {
    private let channel = AsyncThrowingChannel<DatabaseSnapshot, any Error>()
    private let task: Task<Void, Never>

    init(_ changes: MemberChanges) {
      let channel = channel
      // Owned by the observer, and ends with it.
      task = Task {
        do {
          try await withThrowingTaskGroup(of: Void.self) { group in
            for uid in changes.uids {
              group.addTask {
                for try await snapshot in changes.observe(uid) { await channel.send(snapshot) }
              }
            }
            // Unlike `waitForAll`, this ends with the first error.
            while try await group.next() != nil {}
          }
          channel.finish()
        } catch {
          channel.fail(error)
        }
      }
    }

    deinit { task.cancel() }

    func next() async throws -> DatabaseSnapshot? {
      var iterator = channel.makeAsyncIterator()
      return try await iterator.next()
    }
  }
}
