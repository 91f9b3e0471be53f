/// A sorted list of keys with their values, stored in chunks of limited size.
///
/// A copy is cheap, and later changes to the original do not affect it. The first change after a
/// copy clones the list of chunks and the changed chunk. This is the cost of a snapshot.
struct SortedEntries: Sendable {
  /// The chunks in order, none of which is empty.
  private var chunks: [Chunk] = []

  /// The size at which a chunk is split.
  ///
  /// It balances the cost of moving entries and of finding the chunk.
  static let chunkEntriesMax = 256

  private struct Chunk: Sendable {
    var keys: [[UInt8]]
    var values: [StoredValue]

    func lowerBound(_ key: [UInt8]) -> Int {
      var low = 0
      var high = keys.count
      while low < high {
        let middle = (low + high) / 2
        if KeyOrder.compare(keys[middle], key) < 0 { low = middle + 1 } else { high = middle }
      }
      return low
    }

    mutating func remove(_ range: Range<Int>) {
      keys.removeSubrange(range)
      values.removeSubrange(range)
    }
  }

  /// The position of an entry, or the position after the last entry of a chunk.
  private struct Place {
    var chunk: Int
    var offset: Int
  }

  func get(_ key: [UInt8]) -> StoredValue? {
    guard let place = placeOfEntry(key) else { return nil }
    return chunks[place.chunk].values[place.offset]
  }

  mutating func put(_ key: [UInt8], _ value: StoredValue) {
    guard !chunks.isEmpty else {
      chunks.append(Chunk(keys: [key], values: [value]))
      return
    }
    let place = lowerBound(key)
    let chunk = place.chunk
    let count = chunks[chunk].keys.count
    if place.offset < count, chunks[chunk].keys[place.offset] == key {
      chunks[chunk].values[place.offset] = value
      return
    }
    chunks[chunk].keys.insert(key, at: place.offset)
    chunks[chunk].values.insert(value, at: place.offset)
    if count + 1 > Self.chunkEntriesMax { split(chunk, appending: place.offset == count) }
  }

  /// Removes a key if it exists.
  mutating func remove(_ key: [UInt8]) {
    guard let place = placeOfEntry(key) else { return }
    chunks[place.chunk].remove(place.offset..<place.offset + 1)
    if chunks[place.chunk].keys.isEmpty { chunks.remove(at: place.chunk) }
  }

  /// Removes the keys from `from` up to, but not including, `to`; nil means no limit.
  mutating func removeRange(from: [UInt8]?, to: [UInt8]?) {
    guard !chunks.isEmpty else { return }
    let start = from.map(lowerBound) ?? Place(chunk: 0, offset: 0)
    let end = to.map(lowerBound) ?? endPlace
    guard (start.chunk, start.offset) < (end.chunk, end.offset) else { return }
    if start.chunk == end.chunk {
      chunks[start.chunk].remove(start.offset..<end.offset)
    } else {
      chunks[end.chunk].remove(0..<end.offset)
      chunks[start.chunk].remove(start.offset..<chunks[start.chunk].keys.count)
      chunks.removeSubrange(start.chunk + 1..<end.chunk)
    }
    // At most the two chunks at the ends of the range are empty. They are neighbors now.
    for chunk in [start.chunk + 1, start.chunk]
    where chunk < chunks.count && chunks[chunk].keys.isEmpty {
      chunks.remove(at: chunk)
    }
  }

  /// Calls `body` for the keys from `from` up to `to`, in order, until it returns false.
  ///
  /// The range excludes `to`; nil means no limit.
  func scan(
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
  ) rethrows {
    guard !chunks.isEmpty else { return }
    var place =
      descending
      ? to.map(lowerBound) ?? endPlace : from.map(lowerBound) ?? Place(chunk: 0, offset: 0)
    while let entry = descending ? stepBack(&place) : stepForward(&place) {
      let chunk = chunks[entry.chunk]
      let key = chunk.keys[entry.offset]
      if descending {
        if let from, KeyOrder.compare(key, from) < 0 { return }
      } else {
        if let to, KeyOrder.compare(key, to) >= 0 { return }
      }
      guard try body(key, chunk.values[entry.offset]) else { return }
    }
  }

  private var endPlace: Place {
    Place(chunk: chunks.count - 1, offset: chunks[chunks.count - 1].keys.count)
  }

  private func stepForward(_ place: inout Place) -> Place? {
    if place.offset == chunks[place.chunk].keys.count {
      guard place.chunk + 1 < chunks.count else { return nil }
      place = Place(chunk: place.chunk + 1, offset: 0)
    }
    defer { place.offset += 1 }
    return place
  }

  private func stepBack(_ place: inout Place) -> Place? {
    if place.offset == 0 {
      guard place.chunk > 0 else { return nil }
      place = Place(chunk: place.chunk - 1, offset: chunks[place.chunk - 1].keys.count)
    }
    place.offset -= 1
    return place
  }

  private func placeOfEntry(_ key: [UInt8]) -> Place? {
    guard !chunks.isEmpty else { return nil }
    let place = lowerBound(key)
    let keys = chunks[place.chunk].keys
    return place.offset < keys.count && keys[place.offset] == key ? place : nil
  }

  /// Returns the position of the first entry at or above `key`.
  ///
  /// The position is in the last chunk that begins at or below `key`, possibly after its last
  /// entry.
  private func lowerBound(_ key: [UInt8]) -> Place {
    var low = 0
    var high = chunks.count
    while low < high {
      let middle = (low + high) / 2
      if KeyOrder.compare(chunks[middle].keys[0], key) <= 0 {
        low = middle + 1
      } else {
        high = middle
      }
    }
    let chunk = max(low - 1, 0)
    return Place(chunk: chunk, offset: chunks[chunk].lowerBound(key))
  }

  /// Splits a chunk in half, or moves only its last entry to a new chunk if keys arrive in order.
  ///
  /// A growing log therefore has full chunks.
  private mutating func split(_ chunk: Int, appending: Bool) {
    let count = chunks[chunk].keys.count
    let middle = appending ? count - 1 : count / 2
    let upper = Chunk(
      keys: Array(chunks[chunk].keys[middle...]),
      values: Array(chunks[chunk].values[middle...])
    )
    chunks[chunk].remove(middle..<count)
    chunks.insert(upper, at: chunk + 1)
  }
}
