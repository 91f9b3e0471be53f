import DocumentModel
import StorageEngine

/// An entry of the index catalog.
struct Index: Sendable, Hashable {
  /// The unique ID of the index, which is never reused and is the prefix of its entries' keys.
  var id: UInt64
  var definition: IndexDefinition
  var state: State

  /// The build state of an index.
  enum State: Sendable, Hashable {
    /// Writers maintain the index; it has the documents with keys up to `through`, initially empty.
    case building(through: [UInt8])
    /// Complete in every snapshot from this commit on.
    case ready(since: UInt64)
    /// Still maintained but no longer read; its row is about to be removed.
    case leaving
  }

  /// Returns true if a snapshot of the given commit shows the complete index.
  func isUsable(at sequence: UInt64) -> Bool {
    if case .ready(let since) = state { since <= sequence } else { false }
  }
}

/// The catalog of indexes: a value that its owner keeps under a lock and in storage.
struct IndexCatalog: Sendable {
  private(set) var indexes: [UInt64: Index] = [:]
  private var byCollection: [Collection: [UInt64]] = [:]
  private var nextID: UInt64 = 1
  /// The latest choice of each index by a query, as a counter value.
  private var uses: [UInt64: UInt64] = [:]
  private var choices: UInt64 = 0

  /// The keyspace with one row per index: its ID and the encoded `Index`.
  static let keyspace = Keyspace("indexes")

  private struct Collection: Hashable {
    var database: DatabaseName
    var id: String

    static func == (left: Collection, right: Collection) -> Bool {
      left.database == right.database && left.id.isIdentical(to: right.id)
    }
  }

  init() {}

  /// Returns the indexes that a change of a document in a collection with this ID affects.
  func indexes(_ database: DatabaseName, collectionID: String) -> [Index] {
    byCollection[Collection(database: database, id: collectionID), default: []]
      .compactMap { indexes[$0] }
  }

  /// Returns the index with this definition.
  func index(_ definition: IndexDefinition) -> Index? {
    indexes(definition.database, collectionID: definition.collectionID)
      .first { $0.definition == definition }
  }

  /// The indexes being built, oldest first.
  var building: [Index] {
    indexes.values.filter {
      if case .building = $0.state { true } else { false }
    }.sorted { $0.id < $1.id }
  }

  /// Adds an index in the state `building`, with a new ID.
  mutating func add(_ definition: IndexDefinition) -> Index {
    let index = Index(id: nextID, definition: definition, state: .building(through: []))
    insert(index)
    markUsed(index.id)
    return index
  }

  /// Adds an index read from storage.
  mutating func insert(_ index: Index) {
    let collection = Collection(
      database: index.definition.database,
      id: index.definition.collectionID
    )
    indexes[index.id] = index
    byCollection[collection, default: []].append(index.id)
    reserve(index.id)
  }

  /// Records the state of an index; a removed index is ignored.
  mutating func setState(_ state: Index.State, of id: UInt64) {
    indexes[id]?.state = state
  }

  mutating func remove(_ id: UInt64) {
    guard let index = indexes.removeValue(forKey: id) else { return }
    let collection = Collection(
      database: index.definition.database,
      id: index.definition.collectionID
    )
    byCollection[collection]?.removeAll { $0 == id }
    uses[id] = nil
  }

  /// Prevents IDs up to this one from being assigned to new indexes.
  mutating func reserve(_ id: UInt64) {
    nextID = max(nextID, id + 1)
  }

  /// Records that a query chose an index.
  mutating func markUsed(_ id: UInt64) {
    choices += 1
    uses[id] = choices
  }

  /// The least recently used index.
  var leastUsed: Index? { leastUsed(of: indexes.values) }

  /// Returns the least recently used of some indexes.
  func leastUsed(of indexes: some Sequence<Index>) -> Index? {
    indexes.filter { $0.state != .leaving }.min { left, right in
      (uses[left.id] ?? 0, left.id) < (uses[right.id] ?? 0, right.id)
    }
  }
}

extension Index {
  /// The key of the index's row.
  var rowKey: [UInt8] { IndexEntry.prefix(ofIndex: id) }

  /// The row of the index.
  ///
  /// A ready index is stored without its commit: after a restart, every snapshot is later than
  /// that.
  var row: [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(byte: 1)
    definition.encode(to: &encoder)
    switch state {
    case .building(let through):
      encoder.append(byte: 0)
      encoder.append(data: through)
    case .ready, .leaving: encoder.append(byte: 1)
    }
    return encoder.bytes
  }

  /// Returns the ID with which the key of an index's row or entry starts.
  static func number(_ key: ArraySlice<UInt8>) -> UInt64 {
    key.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Decodes a row.
  init(rowKey: [UInt8], row: [UInt8]) throws {
    guard rowKey.count == 8 else { throw CorruptDataError("index row with a strange key") }
    id = Self.number(rowKey[...])
    var decoder = BinaryDecoder(row)
    let version = try decoder.byte()
    guard version == 1 else { throw CorruptDataError("unknown index version \(version)") }
    definition = try IndexDefinition(from: &decoder)
    state =
      try decoder.byte() == 1 ? .ready(since: 0) : .building(through: try decoder.data())
  }
}
