import DocumentModel
package import StorageEngine

/// Named positions in the log that survive a restart.
///
/// Records after the slowest cursor are kept.
package enum EventCursor {
  /// The keyspace of the cursors, whose keys are their names.
  package static let keyspace = Keyspace("event_cursors", .few)

  /// Moves a cursor.
  ///
  /// Its owner has processed the records up to and including `sequence`.
  package static func put(_ name: String, sequence: UInt64, in batch: inout StorageBatch) {
    var encoder = BinaryEncoder()
    encoder.append(sequence)
    batch.put(keyspace, Array(name.utf8), encoder.bytes)
  }

  /// Deletes a cursor, so that it no longer keeps records.
  package static func delete(_ name: String, in batch: inout StorageBatch) {
    batch.delete(keyspace, Array(name.utf8))
  }

  /// Returns the position of a cursor; nil if there is no cursor with this name.
  package static func get(_ name: String, in snapshot: any StorageSnapshot) throws -> UInt64? {
    guard let stored = try snapshot.get(keyspace, Array(name.utf8)) else { return nil }
    return try decode(stored)
  }

  /// Returns the positions of all cursors by name.
  package static func all(in snapshot: any StorageSnapshot) throws -> [String: UInt64] {
    var cursors: [String: UInt64] = [:]
    try snapshot.scan(keyspace, from: nil, to: nil, descending: false) { key, value in
      cursors[String(decoding: key, as: UTF8.self)] = try decode(value)
      return true
    }
    return cursors
  }

  private static func decode(_ stored: StoredValue) throws(CorruptDataError) -> UInt64 {
    var decoder = BinaryDecoder(stored.bytes)
    return try decoder.number()
  }
}
