import DatabaseModel
import JSONText
import OutboundHTTP

/// A reference to a place in a Realtime Database, where there may or may not be a value.
///
/// ```swift
/// let tina = database.reference("presence/tina")
/// try await tina.set(["online": true, "lastSeen": ServerValue.timestamp])
/// try await database.root.update(["presence/tina/online": false, "typing/c1/tina": nil])
/// for try await snapshot in tina.observe() { show(snapshot) }
/// ```
///
/// Dates are written and read as milliseconds since 1970, as the server's time is.
public struct DatabaseReference: Sendable {
  /// The database that contains the place.
  public let database: Database
  let keys: [String]

  /// The last key of the path; nil for the root.
  public var key: String? { keys.last }

  /// The path, such as `presence/tina`; empty for the root.
  public var path: String { keys.joined(separator: "/") }

  /// The reference to the place above; nil for the root.
  public var parent: DatabaseReference? {
    keys.isEmpty ? nil : DatabaseReference(database: database, keys: Array(keys.dropLast()))
  }

  /// Returns a reference to the place with a key below this one.
  ///
  /// A key with a slash, or with one of `.`, `$`, `#`, `[` and `]`, throws where the reference is
  /// used.
  public func child(_ key: String) -> DatabaseReference {
    DatabaseReference(database: database, keys: keys + [key])
  }

  /// Returns a reference below this one with a new key, which comes after those made before.
  public func push() -> DatabaseReference { child(database.pushID()) }

  // MARK: Reading

  /// Reads the value.
  ///
  /// If there is none, `exists` of the snapshot is false. Throws `DatabaseError`:
  /// `permissionDenied` if the rules refuse access, `unavailable` or `deadlineExceeded` if the
  /// server does not respond, and `invalidArgument` for an invalid path.
  public func get() async throws -> DatabaseSnapshot {
    try await ValueQuery(reference: self).get()
  }

  /// Returns a sequence of the value now and after every change.
  ///
  /// See `ValueSnapshots` for its behavior.
  public func observe() -> ValueSnapshots { ValueQuery(reference: self).observe() }

  // MARK: Writing

  /// Replaces the value.
  ///
  /// Throws `DatabaseError`, and `ValueCodingError` for a value that cannot be encoded.
  public func set(_ value: some Encodable) async throws {
    try await write("PUT", try JSONValue(writing: value))
  }

  /// Replaces the value by an object with the given members.
  public func set(_ members: [String: any Encodable & Sendable]) async throws {
    try await write("PUT", try Self.object(members))
  }

  /// Replaces the values at paths below this place, all of them or none.
  ///
  /// Nil deletes. The keys are paths, such as `tina/online`, none of which may be above another.
  public func update(_ values: [String: (any Encodable & Sendable)?]) async throws {
    try await write("PATCH", try Self.object(values), isIdempotent: !Self.increments(values))
  }

  /// Writes a value with a new key below this place, and returns its reference.
  @discardableResult
  public func push(_ value: some Encodable) async throws -> DatabaseReference {
    let reference = push()
    try await reference.set(value)
    return reference
  }

  /// Deletes the value and everything below it.
  public func remove() async throws { try await write("DELETE", nil) }

  /// Replaces the value by what `change` makes of it, if nobody else changes it meanwhile.
  ///
  /// `change` gets nil if there is no value, and deletes the value by returning nil. It runs again
  /// for the new value if somebody else was faster, up to 25 times; then `aborted` is thrown. Any
  /// error of `change` ends the transaction without a write. Returns the value that was written.
  @discardableResult
  public func transaction<Value: Codable & Sendable>(
    _ change: (Value?) async throws -> Value?
  ) async throws -> Value? {
    let calls = database.calls
    var headers: OutboundHeaders = ["X-Firebase-ETag": "true"]
    var response = try await calls.send(.init(keys: try validKeys(), headers: headers))
    for _ in 0..<Self.attemptsMax {
      guard let tag = response.headers["ETag"] else {
        throw DatabaseError(.internal, "the server sent no ETag, which a transaction needs")
      }
      let current = try DatabaseSnapshot(parsing: response.body, of: self)
      let new = try await change(try current.data())
      headers["if-match"] = tag
      response = try await calls.send(
        .init(
          method: "PUT",
          keys: keys,
          headers: headers,
          body: try JSONValue(writing: new).bytes,
          // The server may have written the value, and the second attempt would then fail.
          isIdempotent: false
        )
      )
      if response.isSuccess { return new }
    }
    throw DatabaseError(.aborted, "others changed \(path) each time before the transaction could")
  }

  private func write(_ method: String, _ value: JSONValue?, isIdempotent: Bool = true) async throws
  {
    _ = try await database.calls.send(
      .init(
        method: method,
        keys: try validKeys(),
        query: [("print", "silent")],
        body: value?.bytes ?? [],
        isIdempotent: isIdempotent
      )
    )
  }

  static func object(_ members: [String: (any Encodable & Sendable)?]) throws -> JSONValue {
    .object(try members.mapValues { try $0.map { try JSONValue(writing: $0) } ?? .null })
  }

  private static func increments(_ values: [String: (any Encodable & Sendable)?]) -> Bool {
    values.values.contains { ($0 as? ServerValue)?.isIncrement == true }
  }

  /// Returns the keys; throws `invalidArgument` if one of them is not valid.
  func validKeys() throws -> [String] {
    guard keys.count <= DatabasePath.depthMax, keys.allSatisfy({ DatabaseKey.isValid($0) }) else {
      throw DatabaseError(
        .invalidArgument,
        "\"\(path)\" is not a path of the Realtime Database; keys have none of . $ # [ ] / and at "
          + "most \(DatabaseKey.bytesMax) bytes"
      )
    }
    return keys
  }

  /// The maximum number of attempts at a transaction, as in the official clients.
  private static let attemptsMax = 25
}

/// A value that the server computes when it writes.
public struct ServerValue: Encodable, Sendable, Hashable {
  private var change: Double?

  /// The server's time, in milliseconds since 1970.
  public static let timestamp = ServerValue(change: nil)

  /// The number that is there, or 0, plus `change`.
  public static func increment(_ change: Double) -> ServerValue { ServerValue(change: change) }

  var isIncrement: Bool { change != nil }

  /// Encodes the value as the object that the server replaces.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    if let change {
      try container.encode(["increment": change], forKey: .value)
    } else {
      try container.encode("timestamp", forKey: .value)
    }
  }

  private enum Key: String, CodingKey {
    case value = ".sv"
  }
}
