import DatabaseModel
@_exported public import FirestoreClient
import GoogleAccess
public import OutboundHTTP
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The error of a failed call to the Realtime Database, with the same codes as Firestore's.
public typealias DatabaseError = FirestoreError

/// The access rights of calls to the Realtime Database, which are the same as for Firestore.
public typealias DatabaseCredential = FirestoreCredential

/// A Realtime Database, as used by a function, a server or an app.
///
/// ```swift
/// let database = Database(environment: await FunctionsApp.environment())
/// let tina: Presence? = try await database.reference("presence/tina").get().data()
/// ```
///
/// It is a value, and copies share their connections. By default it has the access rights of the
/// administrator, so the rules do not apply. Use `acting(as:)` for other rights.
public struct Database: Sendable {
  let calls: DatabaseCalls
  let sockets: any MessageSockets
  private let pushIDs: PushIDs

  /// Creates a client that accesses a database over HTTP, according to the settings.
  ///
  /// Without `http` it creates a client of its own: an `OutboundClient`, or a `URLSessionTransport`
  /// on systems without libcurl, such as iOS.
  public init(_ settings: DatabaseSettings, http: (any HTTPTransport)? = nil) {
    let http = http ?? PlatformTransport.make()
    self.init(
      DatabaseCalls(
        settings: settings,
        http: http,
        tokens: settings.credentials.map { GoogleCredentials(source: $0, http: http) },
        identity: .fixed(settings.credential)
      )
    )
  }

  /// Creates a client for the database that an environment describes.
  ///
  /// See `DatabaseSettings(environment:)` for the variables. A missing variable throws with the
  /// first call instead of here, because a functions binary also runs without any variables to
  /// write its manifest.
  public init(environment: [String: String], http: (any HTTPTransport)? = nil) {
    do {
      let settings = try DatabaseSettings(environment: environment)
      self.init(settings, http: http ?? PlatformTransport.make(environment: environment))
    } catch {
      self.init(
        DatabaseSettings(url: "http://unknown.invalid"),
        http: UnavailableDatabase(reason: error)
      )
    }
  }

  init(
    _ calls: DatabaseCalls,
    sockets: any MessageSockets = PlatformSockets(),
    pushIDs: PushIDs = PushIDs()
  ) {
    self.calls = calls
    self.sockets = sockets
    self.pushIDs = pushIDs
  }

  /// Returns the same database with other access rights.
  ///
  /// With a user's ID token the rules decide what is read and written. The token expires after an
  /// hour; `acting(as:)` with an `IDTokenSource` renews it.
  public func acting(as credential: DatabaseCredential) -> Database {
    acting(as: .fixed(credential))
  }

  /// Returns the same database with the access rights of a signed-in user.
  ///
  /// The rules decide what is read and written. The tokens of `source` are renewed as needed, also
  /// while values are observed. Calls throw `DatabaseError`, and the errors of `source`.
  public func acting(as source: any IDTokenSource) -> Database {
    acting(as: .user(source))
  }

  private func acting(as identity: CallIdentity) -> Database {
    var calls = calls
    calls.identity = identity
    return Database(calls, sockets: sockets, pushIDs: pushIDs)
  }

  /// The reference to the whole database.
  public var root: DatabaseReference { DatabaseReference(database: self, keys: []) }

  /// Returns a reference to a value by its path, such as `presence/tina`.
  ///
  /// Every slash separates keys. Pass an untrusted key to `DatabaseReference.child(_:)` of a
  /// reference instead, where a slash is refused. An invalid path throws where the reference is
  /// used.
  public func reference(_ path: String) -> DatabaseReference {
    DatabaseReference(
      database: self,
      keys: path.split(separator: "/").map { String($0) }
    )
  }

  /// Returns a reference to a value by the path that its keys make.
  public func reference(_ path: some DocumentPath) -> DatabaseReference {
    DatabaseReference(database: self, keys: path.documentPath.segments)
  }

  func pushID() -> String { pushIDs.next() }
}

/// The source of the keys of `push`, which all copies of a database share.
final class PushIDs: Sendable {
  private let generator = Mutex(PushIDGenerator())

  func next() -> String {
    var random = SystemRandomNumberGenerator()
    let milliseconds = Int64(Date().timeIntervalSince1970 * 1000)
    return generator.withLock { $0.next(atMilliseconds: milliseconds, using: &random) }
  }
}

/// A transport that throws the same error for every call, for an environment without a database.
private struct UnavailableDatabase: HTTPTransport {
  let reason: any Error

  func send(_ request: OutboundRequest) async throws -> OutboundResponse { throw reason }
}
