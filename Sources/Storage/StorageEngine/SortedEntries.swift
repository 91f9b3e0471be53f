/// Keys in order with their values, as chunks of bounded size.
///
/// A copy is cheap and stays as it was: the first change after a copy clones the list of chunks and
/// the changed chunk, which is what a snapshot costs.
struct SortedEntries: Sendable {
  /// The chunks in order; none is empty.
  private var chunks: [Chunk] = []

  /// A full chunk is halved; the size balances moving entries against finding the chunk.
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

  /// An entry's place; the place after a chunk's last entry is valid too.
  private struct Place {
    var chunk: Int
    var offset: Int
  }

  /// The value of a key.
  func get(_ key: [UInt8]) -> StoredValue? {
    guard let place = placeOfEntry(key) else { return nil }
    return chunks[place.chunk].values[place.offset]
  }

  /// Sets a key.
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

  /// Removes a key, if it is there.
  mutating func remove(_ key: [UInt8]) {
    guard let place = placeOfEntry(key) else { return }
    chunks[place.chunk].remove(place.offset..<place.offset + 1)
    if chunks[place.chunk].keys.isEmpty { chunks.remove(at: place.chunk) }
  }

  /// Removes a half-open range; nil is unbounded.
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
    // At most the two chunks at the ends of the range became empty; they are now neighbours.
    for chunk in [start.chunk + 1, start.chunk]
    where chunk < chunks.count && chunks[chunk].keys.isEmpty {
      chunks.remove(at: chunk)
    }
  }

  /// Calls `body` in order until it returns false; bounds are half-open, nil is unbounded.
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

  /// The first entry at or above `key`, in the last chunk that begins at or below it.
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

  /// Halves a chunk, or starts a new one with its last entry when entries arrive in order.
  ///
  /// A growing log thus leaves full chunks behind.
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
