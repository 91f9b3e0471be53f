/// The fields of a document or of a nested map: values by name.
///
/// A map is used like a dictionary. Names are compared by their UTF-8 bytes, as in Firestore;
/// Swift's `String` ignores the difference between `é` as one scalar and as two. Fields are sorted
/// by those bytes, which is also the order in which Firestore compares maps. Finding a field takes
/// O(log n), inserting one up to O(n).
public struct MapValue: Sendable, Hashable {
  /// A field's name and value.
  public typealias Element = (key: String, value: FirestoreValue)

  /// The fields, sorted by the bytes of their names; each name occurs once.
  private var entries: [Entry] = []

  /// Creates a map without fields.
  public init() {}

  /// Creates a map of the given fields; for a repeated name the last value is kept.
  public init(_ fields: some Sequence<(String, FirestoreValue)>) {
    entries = fields.map(Entry.init)
    restoreOrder()
  }

  /// Creates a map from a dictionary, whose names are distinct as Swift strings.
  public init(_ fields: [String: FirestoreValue]) {
    self.init(fields.lazy.map { ($0.key, $0.value) })
  }

  /// The value of a field; setting nil removes the field.
  public subscript(key: String) -> FirestoreValue? {
    get {
      let (index, isPresent) = position(of: key)
      return isPresent ? entries[index].value : nil
    }
    set {
      let (index, isPresent) = position(of: key)
      switch (newValue, isPresent) {
      case (let value?, true): entries[index].value = value
      case (let value?, false): entries.insert(Entry(key, value), at: index)
      case (nil, _): removeValue(forKey: key)
      }
    }
  }

  /// Removes a field and returns its value; nil if there was no such field.
  @discardableResult
  public mutating func removeValue(forKey key: String) -> FirestoreValue? {
    let (index, isPresent) = position(of: key)
    return isPresent ? entries.remove(at: index).value : nil
  }

  /// The names, sorted by their bytes.
  public var keys: [String] { entries.map(\.key) }

  /// The values, in the order of their fields' names.
  public var values: [FirestoreValue] { entries.map(\.value) }

  /// Returns a map with the same names and transformed values.
  public func mapValues<E: Error>(
    _ transform: (FirestoreValue) throws(E) -> FirestoreValue
  ) throws(E) -> MapValue {
    var result = self
    for index in entries.indices {
      result.entries[index].value = try transform(entries[index].value)
    }
    return result
  }

  /// Returns a map of the fields that satisfy a predicate.
  public func filter(_ isIncluded: (Element) throws -> Bool) rethrows -> MapValue {
    var result = MapValue()
    for field in self where try isIncluded(field) { result.append(field.key, field.value) }
    return result
  }

  /// Sets a field, like the subscript; O(1) when fields arrive in sorted order.
  package mutating func append(_ key: String, _ value: FirestoreValue) {
    if let last = entries.last, !last.isBefore(key) {
      self[key] = value
    } else {
      entries.append(Entry(key, value))
    }
  }

  private struct Entry: Sendable, Hashable {
    var key: String
    var value: FirestoreValue

    init(_ key: String, _ value: FirestoreValue) {
      self.key = key
      self.value = value
    }

    func isBefore(_ other: String) -> Bool {
      ValueOrder.compareText(key, other) == .less
    }

    static func == (left: Entry, right: Entry) -> Bool {
      left.key.isIdentical(to: right.key) && left.value == right.value
    }

    func hash(into hasher: inout Hasher) {
      key.hashBytes(into: &hasher)
      hasher.combine(value)
    }
  }

  /// Returns the index of a field, or the index at which it would be inserted.
  private func position(of key: String) -> (index: Int, isPresent: Bool) {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      switch ValueOrder.compareText(entries[middle].key, key) {
      case .less: low = middle + 1
      case .equal: return (middle, true)
      case .greater: high = middle
      }
    }
    return (low, false)
  }

  private mutating func restoreOrder() {
    let isInOrder = zip(entries, entries.dropFirst()).allSatisfy { $0.isBefore($1.key) }
    guard !isInOrder else { return }
    let sorted = entries.enumerated().sorted { left, right in
      let order = ValueOrder.compareText(left.element.key, right.element.key)
      return order == .equal ? left.offset < right.offset : order == .less
    }
    var kept: [Entry] = []
    kept.reserveCapacity(entries.count)
    for (_, entry) in sorted {
      if let last = kept.last, last.key.isIdentical(to: entry.key) { kept.removeLast() }
      kept.append(entry)
    }
    entries = kept
  }
}

extension MapValue: RandomAccessCollection {
  /// The index of the first field.
  public var startIndex: Int { 0 }
  /// The index after the last field.
  public var endIndex: Int { entries.count }

  /// The field at an index in the order of names.
  public subscript(position: Int) -> Element {
    (entries[position].key, entries[position].value)
  }
}

extension MapValue: ExpressibleByDictionaryLiteral {
  /// Creates a map of the given fields; for a repeated name the last value is kept.
  public init(dictionaryLiteral elements: (String, FirestoreValue)...) {
    self.init(elements)
  }
}

extension MapValue: Codable {
  /// Decodes the fields that JSON can express, as `FirestoreValue` does.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: ValueCodingKey.self)
    self.init(
      try container.allKeys.map { key in
        (key.stringValue, try container.decode(FirestoreValue.self, forKey: key))
      }
    )
  }

  /// Encodes each field as the nearest value that JSON can express.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: ValueCodingKey.self)
    for (key, value) in self {
      try container.encode(value, forKey: ValueCodingKey(stringValue: key))
    }
  }
}

extension MapValue {
  /// The value at a path; nil if a segment is missing or its parent is not a map.
  public subscript(path: FieldPath) -> FirestoreValue? {
    var current = self[path.segments[0]]
    for segment in path.segments.dropFirst() {
      guard case .map(let fields) = current else { return nil }
      current = fields[segment]
    }
    return current
  }

  /// Sets the value at a path; nil deletes it.
  ///
  /// Setting creates the maps along the path and replaces any value there that is not a map.
  /// Deleting below a value that is not a map changes nothing.
  public mutating func set(_ value: FirestoreValue?, at path: FieldPath) {
    set(value, at: path.segments[...])
  }

  private mutating func set(_ value: FirestoreValue?, at segments: ArraySlice<String>) {
    guard let first = segments.first else { return }
    let rest = segments.dropFirst()
    if rest.isEmpty {
      self[first] = value
    } else if case .map(var fields) = self[first] {
      fields.set(value, at: rest)
      self[first] = .map(fields)
    } else if value != nil {
      var fields = MapValue()
      fields.set(value, at: rest)
      self[first] = .map(fields)
    }
  }
}
