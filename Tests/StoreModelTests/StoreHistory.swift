import DocumentModel

/// The contents of a store over time.
struct StoreHistory {
  private struct Entry {
    /// The last time at which these contents were certainly not there yet.
    var after: Timestamp
    /// The first time at which these contents were certainly there.
    var from: Timestamp
    var model: StoreGame.Model
  }

  private var entries = [
    Entry(after: Timestamp(microseconds: -1), from: Timestamp(microseconds: 0), model: [:])
  ]

  /// Records the result of a commit whose time is known.
  mutating func append(_ model: StoreGame.Model, at time: Timestamp) {
    let before = Timestamp(microseconds: time.microseconds - 1)
    entries.append(Entry(after: before, from: time, model: model))
  }

  /// Records the result of a commit after `before` and no later than `after`.
  mutating func append(_ model: StoreGame.Model, between before: Timestamp, _ after: Timestamp) {
    entries.append(Entry(after: before, from: after, model: model))
  }

  /// Returns the possible contents at a time.
  func models(at time: Timestamp) -> [StoreGame.Model] {
    guard let last = entries.lastIndex(where: { $0.from <= time }) else { return [] }
    return [entries[last].model]
      + entries[(last + 1)...].prefix { $0.after < time }.map(\.model)
  }

  /// Removes entries that only earlier times need.
  mutating func forget(before time: Timestamp) {
    guard let last = entries.lastIndex(where: { $0.from <= time }) else { return }
    entries.removeFirst(last)
  }
}
