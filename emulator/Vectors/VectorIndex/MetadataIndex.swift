/// An index from metadata values to the rows of a namespace, for the keys that filters use.
///
/// A key is indexed when a filter first uses it, and then updated row by row. The number of keys is
/// bounded, and so is the number of entries of each key.
struct MetadataIndex: Sendable {
  private var keys: [String: Key] = [:]
  private var uses: UInt64 = 0

  /// The maximum number of indexed keys of one namespace.
  ///
  /// A further key replaces the least recently used one.
  static let keysMax = 16
  /// Returns the maximum number of entries of one key.
  ///
  /// It is four per row plus a constant, so a key with long lists is not indexed.
  fileprivate static func entriesMax(rows: Int) -> Int { rows * 4 + 4096 }

  fileprivate struct Key: Sendable {
    /// The rows by value or by list element; ascending.
    var rows: [MetadataValue: [Int32]] = [:]
    /// The numeric value of each row; NaN for other values.
    var numbers: [Double] = []
    var entries = 0
    var lastUse: UInt64 = 0
    /// True for a key with too many entries.
    ///
    /// The key is kept without entries, so that it is not indexed again for each filter.
    var isDropped = false
  }

  /// The names of the indexed keys, copied out of the dictionary.
  ///
  /// Changing a key while iterating over `keys.keys` would copy the whole index for each row.
  private var names: [String] { Array(keys.keys) }

  /// The rows that can match a filter.
  enum Selection: Sendable {
    case all
    /// Rows in ascending order; unless `isExact` is true, some of them may not match.
    case rows([Int32], isExact: Bool)
  }

  /// Returns the keys that a filter needs and that are not indexed yet.
  ///
  /// Returns none if the filter needs more than `keysMax` keys, because they would only replace one
  /// another.
  func missingKeys(_ filter: MetadataFilter) -> [String] {
    let wanted = filter.indexableKeys
    return wanted.count > Self.keysMax ? [] : wanted.subtracting(keys.keys).sorted()
  }

  /// Indexes a key by reading the metadata of all rows in order.
  mutating func add(_ name: String, rows: some Sequence<[String: MetadataValue]>) {
    if keys.count >= Self.keysMax,
      let oldest = keys.min(by: { $0.value.lastUse < $1.value.lastUse })
    {
      keys[oldest.key] = nil
    }
    var key = Key()
    uses += 1
    key.lastUse = uses
    for (row, metadata) in rows.enumerated() { key.insert(metadata[name], Int32(row)) }
    keys[name] = key
  }

  /// Updates the index after a row was added at the end.
  mutating func append(_ metadata: [String: MetadataValue], row: Int) {
    for name in names { keys[name]?.insert(metadata[name], Int32(row)) }
  }

  /// Updates the index after a row's metadata changed.
  mutating func replace(
    _ old: [String: MetadataValue],
    with new: [String: MetadataValue],
    row: Int
  ) {
    for name in names where old[name] != new[name] {
      keys[name]?.remove(old[name], Int32(row))
      keys[name]?.insert(new[name], Int32(row))
    }
  }

  /// Updates the index after the last row was removed.
  mutating func removeLast(_ metadata: [String: MetadataValue], row: Int) {
    for name in names {
      keys[name]?.remove(metadata[name], Int32(row))
      keys[name]?.removeLastNumber()
    }
  }

  /// Returns the rows that can match a filter, as far as the indexed keys determine them.
  mutating func select(_ filter: MetadataFilter) -> Selection {
    uses += 1
    for name in filter.indexableKeys { keys[name]?.lastUse = uses }
    return selection(filter)
  }

  private func selection(_ filter: MetadataFilter) -> Selection {
    switch filter {
    case .and(let filters): return narrowest(filters)
    case .or(let filters): return union(filters.map(selection))
    case .equal(let name, let value):
      guard let key = key(name), value.isScalar else { return .all }
      return .rows(key.rows[value] ?? [], isExact: true)
    case .isIn(let name, let values):
      guard let key = key(name), values.allSatisfy(\.isScalar) else { return .all }
      return union(Set(values).map { .rows(key.rows[$0] ?? [], isExact: true) })
    case .compare(let name, let comparison, let operand):
      guard let key = key(name) else { return .all }
      let rows = key.numbers.indices.lazy.filter { comparison.holds(key.numbers[$0], operand) }
      return .rows(rows.map { Int32($0) }, isExact: true)
    case .notEqual, .isNotIn, .exists: return .all
    }
  }

  private func key(_ name: String) -> Key? {
    keys[name].flatMap { $0.isDropped ? nil : $0 }
  }

  private func narrowest(_ filters: [MetadataFilter]) -> Selection {
    var best = Selection.all
    var bestCount = Int.max
    for filter in filters {
      guard case .rows(let rows, let isExact) = selection(filter), rows.count < bestCount else {
        continue
      }
      bestCount = rows.count
      best = .rows(rows, isExact: isExact && filters.count == 1)
    }
    return best
  }

  private func union(_ selections: [Selection]) -> Selection {
    var all: [Int32] = []
    var isExact = true
    for selection in selections {
      guard case .rows(let rows, let exact) = selection else { return .all }
      isExact = isExact && exact
      all += rows
    }
    guard selections.count > 1 else { return .rows(all, isExact: isExact) }
    all.sort()
    var distinct: [Int32] = []
    distinct.reserveCapacity(all.count)
    for row in all where row != distinct.last { distinct.append(row) }
    return .rows(distinct, isExact: isExact)
  }
}

extension MetadataIndex.Key {
  fileprivate mutating func insert(_ value: MetadataValue?, _ row: Int32) {
    if isDropped { return }
    let number: Double = if case .number(let number) = value { number } else { .nan }
    if Int(row) == numbers.count { numbers.append(number) } else { numbers[Int(row)] = number }
    for element in value?.elements ?? [] {
      let place = rows[element, default: []].place(of: row)
      rows[element, default: []].insert(row, at: place)
      entries += 1
    }
    if entries > MetadataIndex.entriesMax(rows: numbers.count) {
      self = MetadataIndex.Key(lastUse: lastUse, isDropped: true)
    }
  }

  fileprivate mutating func remove(_ value: MetadataValue?, _ row: Int32) {
    if isDropped { return }
    for element in value?.elements ?? [] {
      guard let place = rows[element]?.place(of: row), rows[element]?[place] == row else {
        preconditionFailure("a row is missing from the index of its metadata")
      }
      rows[element]?.remove(at: place)
      if rows[element]?.isEmpty == true { rows[element] = nil }
      entries -= 1
    }
  }

  fileprivate mutating func removeLastNumber() {
    if !isDropped { numbers.removeLast() }
  }
}

extension [Int32] {
  /// Returns the index of a row in an ascending list, or the index at which to insert it.
  fileprivate func place(of row: Int32) -> Int {
    guard let last, last >= row else { return count }
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < row { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension MetadataValue {
  fileprivate var isScalar: Bool {
    if case .strings = self { false } else { true }
  }

  /// The elements by which positive operators find this value.
  fileprivate var elements: Set<MetadataValue> {
    if case .strings(let texts) = self { Set(texts.map { .string($0) }) } else { [self] }
  }
}

extension MetadataFilter {
  /// The keys with which an index can narrow this filter.
  fileprivate var indexableKeys: Set<String> {
    switch self {
    case .and(let filters), .or(let filters):
      filters.reduce(into: []) { $0.formUnion($1.indexableKeys) }
    case .equal(let key, _), .isIn(let key, _), .compare(let key, _, _): [key]
    case .notEqual, .isNotIn, .exists: []
    }
  }
}
