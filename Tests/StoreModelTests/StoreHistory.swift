import DocumentModel

/// What a store held at which times.
struct StoreHistory {
  private struct Entry {
    /// The last time at which this was certainly not there yet.
    var after: Timestamp
    /// The first time at which it certainly was.
    var from: Timestamp
    var model: StoreGame.Model
  }

  private var entries = [
    Entry(after: Timestamp(microseconds: -1), from: Timestamp(microseconds: 0), model: [:])
  ]

  /// Notes what a commit of a known time has made.
  mutating func append(_ model: StoreGame.Model, at time: Timestamp) {
    let before = Timestamp(microseconds: time.microseconds - 1)
    entries.append(Entry(after: before, from: time, model: model))
  }

  /// Notes what was made at some time after `before`, and no later than `after`.
  mutating func append(_ model: StoreGame.Model, between before: Timestamp, _ after: Timestamp) {
    entries.append(Entry(after: before, from: after, model: model))
  }

  /// What may have been there at a time.
  func models(at time: Timestamp) -> [StoreGame.Model] {
    guard let last = entries.lastIndex(where: { $0.from <= time }) else { return [] }
    return [entries[last].model]
      + entries[(last + 1)...].prefix { $0.after < time }.map(\.model)
  }

  /// Forgets what is needed only for earlier times.
  mutating func forget(before time: Timestamp) {
    guard let last = entries.lastIndex(where: { $0.from <= time }) else { return }
    entries.removeFirst(last)
  }
}
