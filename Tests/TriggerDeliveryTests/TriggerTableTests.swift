import DocumentModel
import Events
import Manifests
import StatusCodes
import Testing
import TriggerDelivery

@Suite("Trigger table")
struct TriggerTableTests {
  private let name = DocumentName(
    database: DatabaseName(project: "demo"),
    path: ResourcePath(slashSeparated: "chats/c1")
  )

  private func endpoint(
    _ kind: ChangeKind,
    database: String = "(default)",
    document: String = "chats/{c}"
  ) -> FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.eventTrigger = .init(
      eventType: DocumentEventType(kind).name,
      eventFilters: ["database": database],
      eventFilterPathPatterns: ["document": document]
    )
    return endpoint
  }

  private func change(before: Bool, after: Bool) -> DocumentChange {
    let document = FirestoreDocument(
      name: name,
      fields: [:],
      createTime: Timestamp(microseconds: 1),
      updateTime: Timestamp(microseconds: 1)
    )
    return DocumentChange(
      name: name,
      before: before ? document : nil,
      after: after ? document : nil
    )
  }

  @Test(
    "A change reaches the triggers of its own kind and of written, and no others",
    arguments: [
      (false, true, ["onCreated", "onWritten"]), (true, true, ["onUpdated", "onWritten"]),
      (true, false, ["onDeleted", "onWritten"]),
    ]
  )
  func kinds(before: Bool, after: Bool, expected: [String]) throws {
    let table = try TriggerTable(functions: [
      "onCreated": endpoint(.created), "onUpdated": endpoint(.updated),
      "onDeleted": endpoint(.deleted), "onWritten": endpoint(.written),
    ])

    #expect(
      table.matches(change(before: before, after: after), project: "demo").map(\.function)
        == expected
    )
  }

  @Test("Two functions on one pattern both match")
  func bothMatch() throws {
    let table = try TriggerTable(functions: ["a": endpoint(.created), "b": endpoint(.created)])

    #expect(
      table.matches(change(before: false, after: true), project: "demo").map(\.function) == [
        "a", "b",
      ]
    )
  }

  @Test("A trigger on another database or path does not match")
  func others() throws {
    let table = try TriggerTable(functions: [
      "database": endpoint(.created, database: "other"),
      "path": endpoint(.created, document: "users/{u}"),
    ])

    #expect(table.matches(change(before: false, after: true), project: "demo").isEmpty)
  }

  @Test("A change in another project reaches no function")
  func otherProject() throws {
    let table = try TriggerTable(functions: ["a": endpoint(.created)])

    #expect(table.matches(change(before: false, after: true), project: "demo-2").isEmpty)
  }

  @Test("A trigger without a document is refused by the function's name")
  func withoutDocument() throws {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.eventTrigger = .init(
      eventType: DocumentEventType(.created).name,
      eventFilters: [:]
    )

    let error = #expect(throws: StatusError.self) {
      try TriggerTable(functions: ["broken": endpoint])
    }
    #expect(error?.statusMessage.contains("broken") == true)
  }
}
