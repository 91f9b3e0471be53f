import StorageEngine
import TestSupport
import Testing

/// Applies random batches to an engine and to a dictionary, which must agree after each batch.
@Suite("Storage against a model")
struct ModelComparison {
  private struct Model: Equatable {
    var entries: [Keyspace: [[UInt8]: StoredValue]] = [:]
    var sequence: UInt64 = 0

    mutating func apply(_ batch: StorageBatch, expecting: [VersionExpectation]) -> UInt64? {
      for expectation in expecting {
        let version = entries[expectation.keyspace]?[expectation.key]?.version
        guard version == expectation.version else { return nil }
      }
      sequence += 1
      for operation in batch.operations {
        switch operation {
        case .put(let keyspace, let key, let value):
          entries[keyspace, default: [:]][key] = StoredValue(bytes: value, version: sequence)
        case .putAtSequence(let keyspace, let prefix, let value):
          let key = prefix + (0..<8).map { UInt8(truncatingIfNeeded: sequence >> (56 - 8 * $0)) }
          entries[keyspace, default: [:]][key] = StoredValue(bytes: value, version: sequence)
        case .delete(let keyspace, let key):
          entries[keyspace]?[key] = nil
        case .deleteRange(let keyspace, let from, let to):
          entries[keyspace] = entries[keyspace]?.filter { !Self.isWithin($0.key, from, to) }
        }
      }
      return sequence
    }

    func scan(
      _ keyspace: Keyspace,
      from: [UInt8]?,
      to: [UInt8]?
    ) -> [(key: [UInt8], value: StoredValue)] {
      (entries[keyspace] ?? [:])
        .filter { Self.isWithin($0.key, from, to) }
        .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        .map { ($0.key, $0.value) }
    }

    private static func isWithin(_ key: [UInt8], _ from: [UInt8]?, _ to: [UInt8]?) -> Bool {
      (from.map { !key.lexicographicallyPrecedes($0) } ?? true)
        && (to.map { key.lexicographicallyPrecedes($0) } ?? true)
    }
  }

  private static let keyspaces = [letters, others, few, fewMore, log]

  @Test("Random batches agree with a dictionary", arguments: EngineUnderTest.allCases)
  func randomBatches(engine: EngineUnderTest) async throws {
    var random = SeededGenerator.forTest()
    var model = Model()
    try await engine.withStorage { storage in
      for round in 0..<150 {
        let batch = Self.batch(large: round.isMultiple(of: 10), after: model.sequence, &random)
        let expecting = Self.expectations(model, &random)
        let expected = model.apply(batch, expecting: expecting)
        let outcome: UInt64?
        do {
          outcome = try await storage.commit(batch, expecting: expecting, durability: .relaxed)
        } catch let error as StorageError where error.kind == .conflict {
          outcome = nil
        }
        #expect(outcome == expected)

        let keyspace = Self.keyspaces.randomElement(using: &random) ?? letters
        let from = Self.bound(keyspace, model.sequence, &random)
        let to = Self.bound(keyspace, model.sequence, &random)
        let descending = Bool.random(using: &random)
        let one = Self.key(keyspace, model.sequence, &random)
        let found = try await storage.read { snapshot in
          #expect(try snapshot.get(keyspace, one) == model.entries[keyspace]?[one])
          var found: [([UInt8], StoredValue)] = []
          try snapshot.scan(keyspace, from: from, to: to, descending: descending) { key, value in
            found.append((key, value))
            return true
          }
          return found
        }
        var wanted = model.scan(keyspace, from: from, to: to)
        if descending { wanted.reverse() }
        #expect(found.map(\.0) == wanted.map(\.key))
        #expect(found.map(\.1) == wanted.map(\.value))
      }
    }
  }

  @Test(
    "Concurrent increments under expectations lose nothing",
    arguments: EngineUnderTest.allCases
  )
  func concurrentIncrements(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask {
            var done = 0
            while done < 25 {
              let stored = try await storage.read { try $0.get(letters, [1]) }
              let next = (stored?.bytes.first ?? 0) + 1
              do {
                try await storage.commit(
                  .putting([[1]], [next]),
                  expecting: [VersionExpectation(letters, [1], version: stored?.version)],
                  durability: .relaxed
                )
                done += 1
              } catch let error as StorageError where error.kind == .conflict {
                continue
              }
            }
          }
        }
        try await group.waitForAll()
      }
      let stored = try await storage.read { try $0.get(letters, [1]) }

      #expect(stored == StoredValue(bytes: [200], version: 200))
    }
  }

  private static func batch(
    large: Bool,
    after sequence: UInt64,
    _ random: inout SeededGenerator
  ) -> StorageBatch {
    var batch = StorageBatch()
    for _ in 0..<(large ? 400 : Int.random(in: 0...12, using: &random)) {
      let keyspace = keyspaces.randomElement(using: &random) ?? letters
      let key = Self.key(keyspace, sequence, &random)
      switch Int.random(in: 0..<(large ? 8 : 11), using: &random) {
      case 0...6 where keyspace.form == .log: batch.putAtSequence(keyspace, [2])
      case 7 where keyspace.form == .log: batch.putAtSequence(keyspace, [3])
      case 0...6:
        let count = Int.random(in: 0...40, using: &random)
        batch.put(keyspace, key, (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
      case 7: batch.putAtSequence(keyspace, prefix: key, [1])
      case 8...9: batch.delete(keyspace, key)
      default:
        batch.deleteRange(
          keyspace,
          from: bound(keyspace, sequence, &random),
          to: bound(keyspace, sequence, &random)
        )
      }
    }
    return batch
  }

  private static func expectations(
    _ model: Model,
    _ random: inout SeededGenerator
  ) -> [VersionExpectation] {
    guard Int.random(in: 0..<4, using: &random) == 0 else { return [] }
    let keyspace = keyspaces.randomElement(using: &random) ?? letters
    let key = Self.key(keyspace, model.sequence, &random)
    let version = model.entries[keyspace]?[key]?.version
    // One expectation in three is wrong.
    let wrong = Int.random(in: 0..<3, using: &random) == 0
    return [VersionExpectation(keyspace, key, version: wrong ? 1_000_000 : version)]
  }

  /// A random short key.
  ///
  /// Few distinct keys exist, so that batches touch the same ones, yet enough for several chunks.
  /// In a log most keys are sequence numbers, sometimes truncated or extended.
  private static func key(
    _ keyspace: Keyspace,
    _ sequence: UInt64,
    _ random: inout SeededGenerator
  ) -> [UInt8] {
    if keyspace.form == .log, Int.random(in: 0..<8, using: &random) > 0 {
      let number = UInt64.random(in: 0...sequence + 2, using: &random)
      let key = StorageBatch.Operation.key(prefix: [], sequence: number)
      return switch Int.random(in: 0..<8, using: &random) {
      case 0: Array(key.dropLast())
      case 1: key + [0]
      default: key
      }
    }
    let alphabet: [UInt8] = [0, 1, 2, 0x60, 0x7F, 0x80, 0xFE, 0xFF]
    return (0..<Int.random(in: 0...4, using: &random)).map { _ in
      alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
    }
  }

  private static func bound(
    _ keyspace: Keyspace,
    _ sequence: UInt64,
    _ random: inout SeededGenerator
  ) -> [UInt8]? {
    Int.random(in: 0..<5, using: &random) == 0 ? nil : key(keyspace, sequence, &random)
  }
}
