import DatabaseModel
import DocumentModel
import EventLog
import Identity
import StorageEngine

/// The stored writes that are applied when their sessions end, even if the suite ends before.
enum DisconnectRows {
  static let keyspace = Keyspace("rtdb_disconnects")

  /// A stored write with the identity that its session had last.
  struct Row: Sendable {
    var session: UInt64
    var number: UInt64
    var caller: DatabaseCaller
    var write: DatabaseWrite
  }

  static func key(instance: String, session: UInt64, number: UInt64) -> [UInt8] {
    var bytes = NodeRows.prefix(instance: instance)
    for integer in [session, number] { withUnsafeBytes(of: integer.bigEndian) { bytes += $0 } }
    return bytes
  }

  static func put(_ row: Row, instance: String, in batch: inout StorageBatch) {
    var encoder = BinaryEncoder()
    encoder.append(row.caller.auth)
    encoder.append(optional: row.caller.override)
    encoder.append(row.write.operation)
    batch.put(
      keyspace,
      key(instance: instance, session: row.session, number: row.number),
      encoder.bytes
    )
  }

  /// Returns all rows of an instance: sessions in their order, and each one's writes in theirs.
  static func all(instance: String, in snapshot: any StorageSnapshot) throws -> [Row] {
    let prefix = NodeRows.prefix(instance: instance)
    var rows: [Row] = []
    try snapshot.scan(keyspace, prefix: prefix) { key, value in
      guard key.count == prefix.count + 16 else {
        throw CorruptDataError("the key of a write on disconnect is damaged")
      }
      func integer(_ start: Int) -> UInt64 {
        key[prefix.count + start..<prefix.count + start + 8].reduce(0) { $0 << 8 | UInt64($1) }
      }
      var decoder = BinaryDecoder(value.bytes)
      let caller = DatabaseCaller(try decoder.auth(), override: try decoder.optionalText())
      let write = DatabaseWrite(try decoder.databaseOperation())
      rows.append(Row(session: integer(0), number: integer(8), caller: caller, write: write))
      return true
    }
    return rows
  }

  /// Returns the names of the instances that have rows.
  static func instances(in snapshot: any StorageSnapshot) throws -> [String] {
    try instanceNames(keyspace, in: snapshot)
  }
}

/// Returns the names of the instances that have rows in a keyspace, sorted.
func instanceNames(_ keyspace: Keyspace, in snapshot: any StorageSnapshot) throws -> [String] {
  var names: [String] = []
  var from: [UInt8]? = nil
  while true {
    var found: [UInt8]?
    try snapshot.scanKeys(keyspace, from: from, to: nil, descending: false) { key, _ in
      found = key.firstIndex(of: 0).map { Array(key[..<$0]) }
      return false
    }
    guard let found else { return names }
    names.append(String(decoding: found, as: UTF8.self))
    from = found + [1]
  }
}

extension BinaryEncoder {
  fileprivate mutating func append(_ operation: DatabaseWrite.Operation) {
    switch operation {
    case .set(let path, let input):
      append(byte: 0)
      append(path)
      append(input)
    case .setPriority(let path, let input):
      append(byte: 1)
      append(path)
      append(input)
    case .merge(let path, let members):
      append(byte: 2)
      append(path)
      append(UInt64(members.count))
      for member in members {
        append(member.path)
        append(byte: member.isPriority ? 1 : 0)
        append(member.value)
      }
    }
  }

  private mutating func append(_ path: DatabasePath) {
    append(path.keys.joined(separator: "/"))
  }

  private mutating func append(_ input: DatabaseInput) {
    append(data: input.node.json(.export))
    append(UInt64(input.serverValues.count))
    for placed in input.serverValues {
      append(placed.path)
      append(byte: placed.isPriority ? 1 : 0)
      switch placed.value {
      case .timestamp: append(byte: 0)
      case .increment(let amount):
        append(byte: 1)
        append(amount)
      }
    }
  }
}

extension BinaryDecoder {
  fileprivate mutating func databaseOperation() throws -> DatabaseWrite.Operation {
    switch try byte() {
    case 0: return .set(try databasePath(), try databaseInput())
    case 1: return .setPriority(try databasePath(), try databaseInput())
    case 2:
      let path = try databasePath()
      var members: [DatabaseWrite.Member] = []
      for _ in 0..<(try count()) {
        members.append(
          DatabaseWrite.Member(
            path: try databasePath(),
            isPriority: try byte() == 1,
            value: try databaseInput()
          )
        )
      }
      return .merge(path, members)
    case let tag: throw CorruptDataError("unknown kind of write \(tag)")
    }
  }

  private mutating func databasePath() throws -> DatabasePath {
    guard let path = DatabasePath(parsing: try text()) else {
      throw CorruptDataError("a stored path is not valid")
    }
    return path
  }

  private mutating func databaseInput() throws -> DatabaseInput {
    var input = try DatabaseInput(parsing: try data())
    for _ in 0..<(try count()) {
      let path = try databasePath()
      let isPriority = try byte() == 1
      let value: DatabaseInput.ServerValue =
        try byte() == 0 ? .timestamp : .increment(try double())
      input.serverValues.append(
        DatabaseInput.Placed(path: path, isPriority: isPriority, value: value)
      )
    }
    return input
  }
}
