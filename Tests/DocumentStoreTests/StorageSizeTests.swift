import DocumentModel
import Testing

@testable import DocumentStore

@Suite("Storage size")
struct StorageSizeTests {
  @Test("The documentation's example document takes 147 bytes, 44 of them for its name")
  func documentedExample() {
    let task = name("users/jeff/tasks/my_task_id")
    let fields: MapValue = [
      "type": .string("Personal"), "done": .boolean(false), "priority": .integer(1),
      "description": .string("Learn Cloud Firestore"),
    ]

    #expect(StorageSize.name(task) == 44)
    #expect(StorageSize.document(task, fields) == 147)
  }

  @Test("A numeric document id takes 8 bytes, the same text as a collection's id its length")
  func numericIDs() {
    #expect(StorageSize.name(name("c/__id7__")) == 16 + 2 + 8)
    #expect(StorageSize.name(name("__id7__/d")) == 16 + 8 + 2)
    #expect(StorageSize.name(name("c/__idx__")) == 16 + 2 + 8)
    #expect(StorageSize.name(name("c/__id1234567890__")) == 16 + 2 + 8)
  }

  @Test(
    "Each type has its size",
    arguments: [
      (.null, 1), (.boolean(true), 1), (.integer(7), 8), (.double(7), 8),
      (.timestamp(time(1)), 8), (.string("é"), 3), (.bytes([1, 2]), 2),
      (.geoPoint(GeoPoint(latitude: 1, longitude: 2)), 16), (.vector([1, 2, 3]), 24),
      (.array([.null, .integer(1)]), 9), (.map(["ab": .integer(1)]), 11),
      (.reference(name("c/d")), 20), (.array([]), 0), (.map([:]), 0),
    ] as [(FirestoreValue, Int)]
  )
  func values(value: FirestoreValue, size: Int) {
    #expect(StorageSize.value(value) == size)
  }
}
