import DocumentModel
import EventLog
import Events
import InvocationContext
import StorageEngine

/// The events of deliveries, which the log holds until it is trimmed.
extension DeliveryStore {
  /// A reader that loads one event after the other.
  ///
  /// Successive events of one commit share a single read.
  struct EventReader {
    private let snapshot: any StorageSnapshot
    private var record: (sequence: UInt64, found: EventEntry?)?

    init(_ snapshot: any StorageSnapshot) {
      self.snapshot = snapshot
    }

    /// Reads an event and its approximate size; nil if it is no longer stored.
    mutating func event(at place: EventPlace) throws -> (event: DeliveryEvent, bytes: Int)? {
      if record?.sequence != place.sequence {
        record = (place.sequence, try CommitLog.entry(place.sequence, in: snapshot))
      }
      if let entry = record?.found {
        let record = entry.record
        return record.event(at: Int(place.index)).map {
          ($0, entry.bytes / max(1, record.changes.count + record.occurrences.count))
        }
      }
      guard let stored = try snapshot.get(DeliveryStore.events, placeKey(place)) else { return nil }
      let kept = try KeptEvent(sequence: place.sequence, encoded: stored.bytes)
      return kept.record.event(at: 0).map { ($0, stored.bytes.count) }
    }
  }

  /// An event that the log has deleted, and the functions that needed it at that time.
  private struct KeptEvent {
    var functions: [String]
    var record: CommitRecord

    init(functions: [String], record: CommitRecord) {
      self.functions = functions
      self.record = record
    }

    /// Reads only the functions, which come first.
    static func functions(
      from decoder: inout BinaryDecoder
    ) throws(CorruptDataError) -> [String] {
      var functions: [String] = []
      for _ in 0..<(try decoder.count()) { functions.append(try decoder.text()) }
      return functions
    }

    init(sequence: UInt64, encoded: [UInt8]) throws(CorruptDataError) {
      var decoder = BinaryDecoder(encoded)
      functions = try Self.functions(from: &decoder)
      record = try CommitRecord(sequence: sequence, encoded: try decoder.data())
    }

    var encoded: [UInt8] {
      var encoder = BinaryEncoder()
      encoder.append(UInt64(functions.count))
      for function in functions { encoder.append(function) }
      encoder.append(data: record.encoded)
      return encoder.bytes
    }
  }

  /// Keeps the events that deliveries still need from records that the log deletes.
  ///
  /// These are the events of pending deliveries, and of failed deliveries, which may be retried.
  /// None of these records can get new deliveries: the log deletes only records that the cursor has
  /// passed.
  static func keepNeeded(
    _ records: [CommitRecord],
    in snapshot: any StorageSnapshot,
    to batch: inout StorageBatch
  ) throws {
    guard let first = records.first?.sequence, let last = records.last?.sequence else { return }
    var needed: [EventPlace: [String]] = [:]
    let from = placeKey(EventPlace(sequence: first, index: 0))
    let to = placeKey(EventPlace(sequence: last + 1, index: 0))
    for function in try functionsPending(in: snapshot) {
      let prefix = prefix(function)
      try snapshot.scan(pending, from: prefix + from, to: prefix + to, descending: false) {
        key,
        _ in
        needed[try place(key.suffix(16)), default: []].append(function)
        return true
      }
    }
    try snapshot.scan(failed, from: from, to: to, descending: false) { key, _ in
      let function = String(decoding: key.dropFirst(16), as: UTF8.self)
      needed[try place(key.prefix(16)), default: []].append(function)
      return true
    }
    guard !needed.isEmpty else { return }
    let bySequence = Dictionary(records.map { ($0.sequence, $0) }) { first, _ in first }
    for (place, functions) in needed {
      guard var record = bySequence[place.sequence]?.only(at: Int(place.index)) else { continue }
      if case .value(let change)? = record.occurrences.first {
        guard let function = functions.first,
          let delivery = try delivery(DeliveryID(place, function), in: snapshot)
        else { continue }
        let path = delivery.subject.split(separator: "/").map { String($0) }
        record.occurrences = [.value(try change.narrowed(to: path))]
      }
      batch.put(
        events,
        placeKey(place),
        KeptEvent(functions: functions, record: record).encoded
      )
    }
  }

  /// Returns the functions that needed an event when the log deleted it.
  ///
  /// Returns nil if the event is not kept here.
  static func functionsNeeding(
    _ place: EventPlace,
    in snapshot: any StorageSnapshot
  ) throws -> [String]? {
    guard let stored = try snapshot.get(events, placeKey(place)) else { return nil }
    var decoder = BinaryDecoder(stored.bytes)
    return try KeptEvent.functions(from: &decoder)
  }

  /// Deletes kept events that no delivery needs any more; examines at most `limit` after a key.
  ///
  /// Returns the last key examined; nil at the end.
  func sweepEvents(after key: [UInt8]?, limit: Int) async throws -> [UInt8]? {
    let (useless, last) = try await storage.read { snapshot -> ([[UInt8]], [UInt8]?) in
      var useless: [[UInt8]] = []
      var looked = 0
      var last: [UInt8]?
      try snapshot.scan(Self.events, from: key.map { $0 + [0] }, to: nil, descending: false) {
        key,
        value in
        let place = try Self.place(key[...])
        var decoder = BinaryDecoder(value.bytes)
        let isNeeded = try KeptEvent.functions(from: &decoder).contains { function in
          let delivery = try Self.delivery(DeliveryID(place, function), in: snapshot)
          return delivery.map { $0.state != .succeeded } ?? false
        }
        if !isNeeded { useless.append(key) }
        looked += 1
        last = looked == limit ? key : nil
        return looked < limit
      }
      return (useless, last)
    }
    guard !useless.isEmpty else { return last }
    var batch = StorageBatch()
    for key in useless { batch.delete(Self.events, key) }
    try await storage.commit(batch, durability: .relaxed)
    return last
  }

  /// Reads one event; nil if it is no longer stored.
  func event(at place: EventPlace) async throws -> DeliveryEvent? {
    try await storage.read { snapshot in
      var reader = EventReader(snapshot)
      return try reader.event(at: place)?.event
    }
  }
}

extension CommitRecord {
  /// Returns the event at an index: a change or, after the changes, an occurrence.
  func event(at index: Int) -> DeliveryEvent? {
    let content: DeliveryEvent.Content
    if changes.indices.contains(index) {
      content = .document(changes[index])
    } else if occurrences.indices.contains(index - changes.count) {
      content = .occurrence(occurrences[index - changes.count])
    } else {
      return nil
    }
    return DeliveryEvent(
      content: content,
      commitTime: commitTime,
      auth: auth,
      traceParent: cause.flatMap(EventCause.traceParent)
    )
  }

  /// Returns the record with a single event.
  fileprivate func only(at index: Int) -> CommitRecord? {
    var record = self
    record.changes = changes.indices.contains(index) ? [changes[index]] : []
    let offset = index - changes.count
    record.occurrences = occurrences.indices.contains(offset) ? [occurrences[offset]] : []
    return record.changes.isEmpty && record.occurrences.isEmpty ? nil : record
  }
}
