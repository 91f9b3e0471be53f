import Dispatch
import StatusCodes
import StorageEngine
import Synchronization
import Testing
import TestSupport

@Suite("Storage contract")
struct OrderedStorageTests {
  private static let keys: [[UInt8]] = [
    [], [0], [0, 0], [0, 1], [1], [1, 0xFF], [1, 0xFF, 0], [2], [0x7F], [0x80], [0xFF],
    [0xFF, 0xFF],
  ]

  @Test("An empty store has sequence 0 and no keys", arguments: EngineUnderTest.allCases)
  func startsEmpty(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      let (value, keys) = try await storage.read { snapshot in
        (try snapshot.get(letters, [1]), try snapshot.keys())
      }

      #expect(storage.sequence == 0)
      #expect(value == nil)
      #expect(keys.isEmpty)
    }
  }

  @Test("Keys come in unsigned bytewise order, both ways", arguments: EngineUnderTest.allCases)
  func ordersBytewise(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting(Self.keys.reversed()))
      let (up, down) = try await storage.read { snapshot in
        (try snapshot.keys(), try snapshot.keys(descending: true))
      }

      #expect(up == Self.keys)
      #expect(down == Self.keys.reversed())
    }
  }

  @Test("Bounds include the lower and exclude the upper", arguments: EngineUnderTest.allCases)
  func boundsAreHalfOpen(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting(Self.keys))
      // Bounds between keys, on keys, beyond both ends, and in reversed order.
      let bounds: [[UInt8]?] = [
        nil, [], [0], [0, 0, 0], [1], [1, 0xFF], [3], [0xFF], [0xFF, 0xFF, 1],
      ]
      try await storage.read { snapshot in
        for from in bounds {
          for to in bounds {
            let expected = Self.keys.filter { key in
              (from.map { KeyOrder.compare(key, $0) >= 0 } ?? true)
                && (to.map { KeyOrder.compare(key, $0) < 0 } ?? true)
            }
            let up = try snapshot.keys(from: from, to: to)
            let down = try snapshot.keys(from: from, to: to, descending: true)
            #expect(up == expected)
            #expect(down == expected.reversed())
          }
        }
      }
    }
  }

  @Test("A prefix scan finds what starts with it", arguments: EngineUnderTest.allCases)
  func scansPrefixes(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting(Self.keys))
      try await storage.read { snapshot in
        for prefix in Self.keys {
          for descending in [false, true] {
            var found: [[UInt8]] = []
            try snapshot.scan(letters, prefix: prefix, descending: descending) { key, _ in
              found.append(key)
              return true
            }
            let expected = Self.keys.filter { $0.starts(with: prefix) }
            #expect(found == (descending ? expected.reversed() : expected))
          }
        }
      }
    }
  }

  @Test(
    "A scan stops when its body returns false and rethrows errors",
    arguments: EngineUnderTest.allCases
  )
  func scanStops(engine: EngineUnderTest) async throws {
    struct Stop: Error {}
    try await engine.withStorage { storage in
      try await storage.commit(.putting(Self.keys))
      let first = try await storage.read { try $0.keys(limit: 2) }
      await #expect(throws: Stop.self) {
        try await storage.read { snapshot in
          try snapshot.scan(letters, prefix: []) { _, _ in throw Stop() }
        }
      }
      // The store remains usable.
      let again = try await storage.read { try $0.keys(limit: 2) }

      #expect(first == [[], [0]])
      #expect(again == first)
    }
  }

  @Test("A scan's body may get and scan the same keyspace", arguments: EngineUnderTest.allCases)
  func scansNest(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting(Self.keys))
      try await storage.read { snapshot in
        var outer = 0
        try snapshot.scan(letters, from: nil, to: nil, descending: false) { key, _ in
          outer += 1
          let value = try snapshot.get(letters, key)
          let keys = try snapshot.keys()
          #expect(value != nil)
          #expect(keys == Self.keys)
          return true
        }
        #expect(outer == Self.keys.count)
      }
    }
  }

  @Test("Values come back as written with their commit", arguments: EngineUnderTest.allCases)
  func valuesRoundTrip(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      let long = [UInt8](repeating: 7, count: 300_000)
      let first = try await storage.commit(.make { $0.put(letters, [1], []) })
      let second = try await storage.commit(.make { $0.put(letters, long, long) })
      let third = try await storage.commit(.make { $0.put(letters, [1], [9]) })
      let (short, big) = try await storage.read { snapshot in
        (try snapshot.get(letters, [1]), try snapshot.get(letters, long))
      }

      #expect([first, second, third] == [1, 2, 3])
      #expect(short == StoredValue(bytes: [9], version: 3))
      #expect(big == StoredValue(bytes: long, version: 2))
    }
  }

  @Test("An empty value is not an absent one", arguments: EngineUnderTest.allCases)
  func emptyValues(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.make { $0.put(letters, [], []) })
      let value = try await storage.read { try $0.get(letters, []) }

      #expect(value == StoredValue(bytes: [], version: 1))
    }
  }

  @Test("Keyspaces are separate", arguments: EngineUnderTest.allCases)
  func keyspacesAreSeparate(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting([[1], [2]]))
      try await storage.commit(.putting([[2], [3]], in: others))
      try await storage.commit(.make { $0.deleteRange(others, from: nil, to: nil) })
      let (kept, cleared) = try await storage.read { snapshot in
        (try snapshot.keys(letters), try snapshot.keys(others))
      }

      #expect(kept == [[1], [2]])
      #expect(cleared.isEmpty)
    }
  }

  @Test("A batch applies in order", arguments: EngineUnderTest.allCases)
  func batchAppliesInOrder(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting([[1], [2], [3], [4]]))
      try await storage.commit(
        .make { batch in
          batch.delete(letters, [1])
          batch.deleteRange(letters, from: [2], to: [4])
          batch.put(letters, [3], [33])
          batch.put(letters, [5], [5])
          batch.delete(letters, [5])
          batch.delete(letters, [6])
          batch.delete(others, [6])
          batch.deleteRange(others, from: nil, to: [6])
        }
      )
      let (keys, third) = try await storage.read { snapshot in
        (try snapshot.keys(), try snapshot.get(letters, [3]))
      }

      #expect(keys == [[3], [4]])
      #expect(third == StoredValue(bytes: [33], version: 2))
    }
  }

  @Test("A key made at the sequence ends with it", arguments: EngineUnderTest.allCases)
  func putsAtSequence(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(StorageBatch())
      let sequence = try await storage.commit(
        .make { batch in
          batch.putAtSequence(letters, [1])
          batch.putAtSequence(others, prefix: [8, 8], [2])
        }
      )
      let (plain, prefixed) = try await storage.read { snapshot in
        (try snapshot.keys(letters), try snapshot.keys(others))
      }

      #expect(sequence == 2)
      #expect(plain == [[0, 0, 0, 0, 0, 0, 0, 2]])
      #expect(prefixed == [[8, 8, 0, 0, 0, 0, 0, 0, 0, 2]])
    }
  }

  @Test(
    "A failed expectation leaves nothing and takes no sequence",
    arguments: EngineUnderTest.allCases
  )
  func conflictsAreAtomic(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting([[1]]))
      try await storage.commit(.putting([[2]]))
      let batch = StorageBatch.make { batch in
        batch.put(letters, [9], [9])
        batch.delete(letters, [1])
        batch.put(others, [9], [9])
      }
      let wrong: [[VersionExpectation]] = [
        [VersionExpectation(letters, [1], version: nil)],
        [VersionExpectation(letters, [1], version: 2)],
        [VersionExpectation(letters, [3], version: 1)],
        [VersionExpectation(others, [1], version: 1)],
        [
          VersionExpectation(letters, [1], version: 1),
          VersionExpectation(letters, [2], version: 1),
        ],
      ]
      for expecting in wrong {
        let error = await #expect(throws: StorageError.self) {
          try await storage.commit(batch, expecting: expecting)
        }
        #expect(error?.kind == .conflict)
        #expect(error?.statusCode == .aborted)
      }
      let (keys, other) = try await storage.read { snapshot in
        (try snapshot.keys(), try snapshot.keys(others))
      }

      #expect(storage.sequence == 2)
      #expect(keys == [[1], [2]])
      #expect(other.isEmpty)
    }
  }

  @Test("Expectations that hold let the batch through", arguments: EngineUnderTest.allCases)
  func expectationsHold(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting([[1]]))
      let sequence = try await storage.commit(
        .putting([[2]]),
        expecting: [
          VersionExpectation(letters, [1], version: 1),
          VersionExpectation(letters, [2], version: nil),
          VersionExpectation(others, [2], version: nil),
        ]
      )

      #expect(sequence == 2)
    }
  }

  @Test(
    "Of batches with one expectation submitted together, one commits",
    arguments: EngineUnderTest.allCases
  )
  func oneWins(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      let committed = await withTaskGroup(of: Bool.self) { group in
        for number in 0..<32 {
          group.addTask {
            do {
              try await storage.commit(
                .putting([[1]], [UInt8(number)]),
                expecting: [VersionExpectation(letters, [1], version: nil)]
              )
              return true
            } catch {
              #expect((error as? StorageError)?.kind == .conflict)
              return false
            }
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }

      #expect(committed == 1)
      #expect(storage.sequence == 1)
    }
  }

  @Test(
    "Sequences follow the order of submission, and so do completions",
    arguments: EngineUnderTest.allCases
  )
  func submitsInOrder(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      let count = 600
      let completed = Mutex<[UInt64]>([])
      await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
        for number in 0..<count {
          storage.submit(
            .putting([[UInt8(number & 0xFF)]], [UInt8(number >> 8)]),
            expecting: [],
            durability: number.isMultiple(of: 3) ? .synced : .relaxed
          ) { result in
            let isLast = completed.withLock { completed in
              if case .success(let sequence) = result { completed.append(sequence) }
              return completed.count == count
            }
            if isLast { done.resume() }
          }
        }
      }

      #expect(completed.withLock { $0 } == Array(1...UInt64(count)))
      #expect(storage.sequence == UInt64(count))
    }
  }

  // submitter              engine
  // lock
  // submit ──────────────▶ (completion wants the lock)
  // unlock
  //                        completion: lock, unlock
  @Test(
    "Submitting under a lock that the completion takes does not deadlock",
    arguments: EngineUnderTest.allCases
  )
  func submitNeverCompletesInline(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      let lock = Mutex(0)
      await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
        lock.withLock { held in
          held += 1
          storage.submit(.putting([[1]]), expecting: [], durability: .synced) { _ in
            lock.withLock { $0 += 1 }
            done.resume()
          }
        }
      }

      #expect(lock.withLock { $0 } == 2)
    }
  }

  @Test("A snapshot stays as it was while others commit", arguments: EngineUnderTest.allCases)
  func snapshotsAreIsolated(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting([[1], [2]]))
      try await storage.read { snapshot in
        let before = try snapshot.keys()
        commitBlocking(.make { $0.delete(letters, [1]) }, storage)
        commitBlocking(.putting([[3]]), storage)
        commitBlocking(.putting([[1]], in: others), storage)

        let again = try snapshot.keys()
        let added = try snapshot.get(letters, [3])
        let made = try snapshot.keys(others)

        #expect(snapshot.sequence == 1)
        #expect(before == [[1], [2]])
        #expect(again == before)
        #expect(added == nil)
        #expect(made.isEmpty)
      }
      let (after, sequence) = try await storage.read { (try $0.keys(), $0.sequence) }

      #expect(after == [[2], [3]])
      #expect(sequence == 4)
    }
  }

  @Test(
    "An acknowledged commit is in every later snapshot, all of it",
    arguments: EngineUnderTest.allCases
  )
  func commitsAreVisibleAtOnce(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<4 {
          group.addTask {
            for round in 0..<50 {
              let value = [UInt8(writer), UInt8(round)]
              let sequence = try await storage.commit(.putting([[0], [1], [2]], value))
              let seen = try await storage.read { $0.sequence }
              #expect(seen >= sequence)
              #expect(storage.sequence >= sequence)
            }
          }
        }
        group.addTask {
          var last: UInt64 = 0
          for _ in 0..<200 {
            let (values, sequence) = try await storage.read { snapshot in
              (try [[0], [1], [2]].map { try snapshot.get(letters, $0) }, snapshot.sequence)
            }
            #expect(Set(values).count == 1)
            #expect(values[0]?.version ?? 0 == sequence)
            #expect(sequence >= last)
            last = sequence
          }
        }
        try await group.waitForAll()
      }

      #expect(storage.sequence == 200)
    }
  }

  @Test("A closed store refuses everything", arguments: EngineUnderTest.allCases)
  func closedRefuses(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      try await storage.commit(.putting([[1]]))
      try await storage.close()
      let write = await #expect(throws: StorageError.self) {
        try await storage.commit(.putting([[2]]))
      }
      let read = await #expect(throws: StorageError.self) {
        try await storage.read { try $0.get(letters, [1]) }
      }

      #expect(write?.kind == .closed)
      #expect(read?.kind == .closed)
    }
  }

  @Test("Closing finishes the commits that were taken", arguments: EngineUnderTest.allCases)
  func closeFinishes(engine: EngineUnderTest) async throws {
    try await engine.withStorage { storage in
      let succeeded = Mutex(0)
      for number in 0..<100 {
        storage.submit(.putting([[UInt8(number)]]), expecting: [], durability: .relaxed) { result in
          if case .success = result { succeeded.withLock { $0 += 1 } }
        }
      }
      try await storage.close()

      #expect(succeeded.withLock { $0 } == 100)
      #expect(storage.sequence == 100)
    }
  }
}

/// Commits from synchronous code and blocks the thread, which only a test may do.
func commitBlocking(_ batch: StorageBatch, _ storage: any OrderedStorage) {
  let semaphore = DispatchSemaphore(value: 0)
  storage.submit(batch, expecting: [], durability: .relaxed) { _ in semaphore.signal() }
  semaphore.wait()
}
