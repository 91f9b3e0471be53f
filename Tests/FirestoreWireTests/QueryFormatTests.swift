import DocumentModel
import FirestoreProtos
import FirestoreWire
import StatusCodes
import SwiftProtobuf
import Testing

@Suite("Queries on the wire")
struct QueryFormatTests {
  private let database = DatabaseName(project: "p")
  private let parent = "projects/p/databases/(default)/documents"

  @Test("A query with every clause comes back as it was")
  func roundTrip() throws {
    let fieldFilters = Query.FieldOperator.allCases.map { fieldOperator in
      let operand: FirestoreValue =
        [.in, .notIn, .arrayContainsAny].contains(fieldOperator)
        ? .array([.array([.integer(1)]), .null]) : .string("x")
      return Query.Filter.field(FieldPath(["f"]), fieldOperator, operand)
    }
    let unaryFilters = Query.UnaryOperator.allCases.map {
      Query.Filter.unary(FieldPath(["u.v"]), $0)
    }
    let query = Query(
      database: database,
      parent: ResourcePath(["chats", "c1"]),
      collectionID: "messages",
      allDescendants: true,
      filter: .and([.or(fieldFilters), .and(unaryFilters)]),
      orders: [Query.Order(FieldPath(["a"])), Query.Order(.documentID, descending: true)],
      start: Query.Cursor([.integer(1)], before: true),
      end: Query.Cursor([], before: false),
      offset: 3,
      limit: 0,
      projection: [.documentID]
    )
    let proto = WireFormat.proto(query)

    #expect(WireFormat.parent(of: query) == "\(parent)/chats/c1")
    #expect(try WireFormat.query(proto, parent: WireFormat.parent(of: query)) == query)
  }

  @Test("Every collection below a parent, as recursive deletes ask for")
  func kindless() throws {
    let proto = try Google_Firestore_V1_StructuredQuery(
      jsonString: #"{"from":[{"allDescendants":true}]}"#
    )

    #expect(
      try WireFormat.query(proto, parent: parent)
        == Query(database: database, collectionID: nil, allDescendants: true)
    )
  }

  @Test(
    "A malformed query is refused in production's words",
    arguments: [
      (
        #""from":[{"collectionId":"c"},{"collectionId":"d"}]"#,
        "StructuredQuery.from cannot have more than one collection selector."
      ),
      (
        #""from":[{"collectionId":"\#(String(repeating: "c", count: 1501))"}]"#,
        "The query kind is longer than 1500 bytes."
      ),
      (
        #""from":[{"collectionId":"c/d"}]"#,
        #"Collection id "c/d" is invalid because it contains "/"."#
      ),
      (#""limit":-1"#, "limit is negative"),
      (#""offset":-1"#, "offset is negative"),
      (#""where":{}"#, "Unknown Filter type."),
      (
        #""where":{"compositeFilter":{"op":"OR"}}"#,
        "Composite filter must have at least one sub-filter."
      ),
      (
        #""where":{"compositeFilter":{"filters":[{}]}}"#, "Unsupported CompositeFilter operator."
      ),
      (
        #""where":{"fieldFilter":{"field":{"fieldPath":"a"},"value":{"nullValue":null}}}"#,
        "Unknown FieldFilter operator."
      ),
      (
        #""where":{"fieldFilter":{"op":"EQUAL","value":{"nullValue":null}}}"#,
        "Invalid empty property path string."
      ),
      (
        #""where":{"fieldFilter":{"field":{"fieldPath":"a"},"op":"IN","value":{"nullValue":null}}}"#,
        "'IN' requires an ArrayValue."
      ),
      (
        #""where":{"fieldFilter":{"field":{"fieldPath":"a"},"op":"NOT_IN","value":{"arrayValue":{}}}}"#,
        "'NOT_IN' requires an non-empty ArrayValue."
      ),
      (
        #""where":{"unaryFilter":{"op":"IS_NULL"}}"#,
        "Unsupported UnaryFilter operand type (non-FIELD)."
      ),
      (
        #""where":{"unaryFilter":{"field":{"fieldPath":"a"}}}"#, "Unknown UnaryFilter operator."
      ),
      (#""orderBy":[{"field":{"fieldPath":"a"},"direction":7}]"#, "Unknown Order direction."),
      (#""startAt":{"values":[{}]}"#, "Cursor has too many values."),
      (
        #""orderBy":[{"field":{"fieldPath":"a"}}],"endAt":{"values":[{}]}"#,
        "Cannot convert firestore.v1.Value with type unset."
      ),
      (
        #""orderBy":[{"field":{"fieldPath":"a.__x__.b"}}]"#,
        "Invalid reserved name in field path __x__"
      ),
    ]
  )
  func malformed(part: String, message: String) throws {
    let from = part.contains("\"from\"") ? "" : #","from":[{"collectionId":"c"}]"#
    let proto = try Google_Firestore_V1_StructuredQuery(jsonString: "{\(part)\(from)}")

    #expect(throws: StatusError.invalidArgument(message)) {
      try WireFormat.query(proto, parent: parent)
    }
  }

  @Test("The order clause of ListDocuments is read")
  func orderClause() throws {
    #expect(try WireFormat.orders(clause: "") == [])
    #expect(
      try WireFormat.orders(clause: "a.b desc, c,d asc")
        == [
          Query.Order(FieldPath(["a", "b"]), descending: true), Query.Order(FieldPath(["c"])),
          Query.Order(FieldPath(["d"])),
        ]
    )
    #expect(throws: StatusError.invalidArgument(#"Invalid order by clause "a,"."#)) {
      try WireFormat.orders(clause: "a,")
    }
    #expect(throws: StatusError.self) { try WireFormat.orders(clause: "a sideways") }
  }
}
