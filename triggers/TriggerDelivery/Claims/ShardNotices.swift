import DocumentModel
import StorageEngine

/// Notices between dispatchers about deliveries that one has put into a shard of another.
///
/// A row's key consists of the shard and the commit's sequence. Its value holds the writer and the
/// number of deliveries of each function. Notices are addressed to the shard, whose owner reads
/// them, because the writer may have lost the shard without knowing. A dispatcher that is alone
/// writes no notices.
enum ShardNotices {
  static let keyspace = Keyspace("dispatch_news")

  /// Adds notices for the owners of the shards to which the deliveries belong.
  static func tell(_ deliveries: [Delivery], by writer: String, in batch: inout StorageBatch) {
    for (shard, deliveries) in Dictionary(grouping: deliveries, by: { Shard(of: $0) }) {
      var encoder = BinaryEncoder()
      encoder.append(writer)
      let counts = Dictionary(grouping: deliveries, by: \.id.function)
      encoder.append(UInt64(counts.count))
      for (function, deliveries) in counts {
        encoder.append(function)
        encoder.append(UInt64(deliveries.count))
      }
      batch.putAtSequence(keyspace, prefix: [shard.number], encoder.bytes)
    }
  }

  /// Returns the number of deliveries of each function that others have put into claimed shards.
  ///
  /// The notices that were read are deleted from storage. If a claim is lost, nothing is taken: the
  /// notices are for the new owner.
  static func take(
    for claims: [Shard: VersionExpectation],
    by reader: String,
    from storage: any OrderedStorage
  ) async throws -> [String: Int] {
    let (functions, ranges) = try await storage.read { snapshot in
      var functions: [String: Int] = [:]
      var ranges: [([UInt8], [UInt8])] = []
      for shard in claims.keys {
        var last: [UInt8]?
        try snapshot.scan(keyspace, prefix: [shard.number]) { key, value in
          var decoder = BinaryDecoder(value.bytes)
          let isOwn = try decoder.text() == reader
          for _ in 0..<(try decoder.count()) {
            let function = try decoder.text()
            let count = Int(try decoder.number())
            if !isOwn { functions[function, default: 0] += count }
          }
          last = key
          return true
        }
        if let last { ranges.append(([shard.number], last + [0])) }
      }
      return (functions, ranges)
    }
    guard !ranges.isEmpty else { return [:] }
    var batch = StorageBatch()
    for (from, to) in ranges { batch.deleteRange(keyspace, from: from, to: to) }
    do {
      try await storage.commit(batch, expecting: Array(claims.values), durability: .relaxed)
    } catch let error as StorageError where error.kind == .conflict {
      return [:]
    }
    return functions
  }
}
