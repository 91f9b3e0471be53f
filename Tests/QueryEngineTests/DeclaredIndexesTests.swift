import DocumentModel
import Foundation
import Logging
import QueryEngine
import StatusCodes
import Testing

@Suite("Declared indexes")
struct DeclaredIndexesTests {
  private static let database = DatabaseName(project: "p", database: "(default)")
  private static let a = FieldPath(["a"])
  private static let b = FieldPath(["b"])
  private static let c = FieldPath(["c"])
  private static let one = FirestoreValue.integer(1)
  private static let bothEqual = Query.Filter.and([
    .field(a, .equal, one), .field(b, .equal, one),
  ])

  private static func query(
    _ filter: Query.Filter? = nil,
    _ orders: [Query.Order] = [],
    isGroup: Bool = false,
    findNearest: FindNearest? = nil
  ) -> Query {
    Query(
      database: database,
      collectionID: "things",
      allDescendants: isGroup,
      filter: filter,
      orders: orders,
      findNearest: findNearest
    )
  }

  private static func runner(_ indexes: String...) throws -> QueryRunner {
    let json = #"{"indexes": [\#(indexes.joined(separator: ","))], "fieldOverrides": []}"#
    return try runner(json: json)
  }

  private static func runner(json: String) throws -> QueryRunner {
    QueryRunner(
      configuration: .init(declaredIndexes: try DeclaredIndexes(json: Data(json.utf8))),
      logger: Logger(label: "test")
    )
  }

  private static func index(_ fields: String, scope: String = "COLLECTION") -> String {
    #"{"collectionGroup": "things", "queryScope": "\#(scope)", "fields": [\#(fields)]}"#
  }

  private static func ordered(_ name: String, _ order: String = "ASCENDING") -> String {
    #"{"fieldPath": "\#(name)", "order": "\#(order)"}"#
  }

  private func isServed(_ query: Query, by runner: QueryRunner) -> Bool {
    do {
      _ = try runner.prepare(query)
      return true
    } catch let error as any StatusConvertible {
      #expect(error.statusCode == .failedPrecondition)
      return false
    } catch {
      Issue.record(error)
      return false
    }
  }

  @Test("Single fields, and equalities together, need no declaration")
  func automatic() throws {
    let runner = try Self.runner()
    #expect(isServed(Self.query(), by: runner))
    #expect(isServed(Self.query(Self.bothEqual), by: runner))
    #expect(isServed(Self.query(nil, [Query.Order(Self.a, descending: true)]), by: runner))
    #expect(isServed(Self.query(.field(Self.a, .lessThan, Self.one)), by: runner))
    #expect(!isServed(Self.query(.field(Self.a, .equal, Self.one), isGroup: true), by: runner))
    #expect(!isServed(Self.query(Self.bothEqual, [Query.Order(Self.c)]), by: runner))
    #expect(runner.neededIndexes(Self.database).count == 2)
  }

  @Test(
    "An index serves its order and not the reverse, with bound fields in any order and direction"
  )
  func orders() throws {
    let runner = try Self.runner(
      Self.index(
        [Self.ordered("b", "DESCENDING"), Self.ordered("a"), Self.ordered("c")].joined(
          separator: ","
        )
      )
    )
    #expect(isServed(Self.query(Self.bothEqual, [Query.Order(Self.c)]), by: runner))
    let reverse = Query.Order(Self.c, descending: true)
    #expect(!isServed(Self.query(Self.bothEqual, [reverse]), by: runner))
    let mixed = [Query.Order(Self.c), Query.Order(.documentID, descending: true)]
    #expect(!isServed(Self.query(Self.bothEqual, mixed), by: runner))
    #expect(
      !isServed(Self.query(.field(Self.a, .equal, Self.one), [Query.Order(Self.c)]), by: runner)
    )
    #expect(!isServed(Self.query(nil, [Query.Order(Self.a), Query.Order(Self.c)]), by: runner))
  }

  @Test("Indexes with the same order are merged where one does not suffice")
  func merge() throws {
    let ac = Self.index([Self.ordered("a"), Self.ordered("c")].joined(separator: ","))
    let bc = Self.index([Self.ordered("b"), Self.ordered("c")].joined(separator: ","))
    let query = Self.query(Self.bothEqual, [Query.Order(Self.c)])
    #expect(isServed(query, by: try Self.runner(ac, bc)))
    #expect(!isServed(query, by: try Self.runner(ac)))
    let bcDown = Self.index(
      [Self.ordered("b"), Self.ordered("c", "DESCENDING")].joined(separator: ",")
    )
    #expect(!isServed(query, by: try Self.runner(ac, bcDown)))
  }

  @Test("A search needs an index of its vectors' dimension behind the bound fields")
  func vectors() throws {
    let index = Self.index(
      #"\#(Self.ordered("a")), {"fieldPath": "v", "vectorConfig": {"dimension": 2, "flat": {}}}"#
    )
    let runner = try Self.runner(index)
    func search(_ dimension: Int) -> FindNearest {
      FindNearest(
        field: FieldPath(["v"]),
        vector: Array(repeating: 1, count: dimension),
        measure: .cosine,
        limit: 1
      )
    }
    let equality = Query.Filter.field(Self.a, .equal, Self.one)
    #expect(isServed(Self.query(equality, findNearest: search(2)), by: runner))
    #expect(!isServed(Self.query(equality, findNearest: search(3)), by: runner))
    #expect(!isServed(Self.query(findNearest: search(2)), by: runner))
  }

  @Test("An override exempts a field, or gives groups an index of it")
  func overrides() throws {
    let runner = try Self.runner(
      json: #"""
        {"fieldOverrides": [
          {"collectionGroup": "things", "fieldPath": "a", "indexes": []},
          {"collectionGroup": "things", "fieldPath": "b", "indexes": [
            {"queryScope": "COLLECTION_GROUP", "order": "ASCENDING"},
            {"queryScope": "COLLECTION_GROUP", "arrayConfig": "CONTAINS"}]}]}
        """#
    )
    #expect(!isServed(Self.query(.field(Self.a, .equal, Self.one)), by: runner))
    #expect(!isServed(Self.query(nil, [Query.Order(Self.a)]), by: runner))
    #expect(isServed(Self.query(.field(Self.b, .equal, Self.one), isGroup: true), by: runner))
    #expect(
      isServed(Self.query(.field(Self.b, .arrayContains, Self.one), isGroup: true), by: runner)
    )
    #expect(isServed(Self.query(nil, [Query.Order(Self.b)], isGroup: true), by: runner))
    #expect(!isServed(Self.query(.field(Self.b, .equal, Self.one)), by: runner))
  }

  @Test("A refusal has production's words, its link, and the line for the file that fixes it")
  func refusal() throws {
    let query = Self.query(
      .and([.field(Self.a, .equal, Self.one), .field(Self.b, .arrayContains, Self.one)]),
      [Query.Order(Self.c, descending: true)]
    )
    let error = #expect(throws: (any Error).self) { try Self.runner().prepare(query) }
    let message = try #require((error as? any StatusConvertible)?.statusMessage)
    let link =
      "https://console.firebase.google.com/v1/r/project/p/firestore/indexes?create_composite="
    #expect(message.hasPrefix("The query requires an index. You can create it here: \(link)"))
    let token = try #require(message.split(separator: "create_composite=").last).prefix {
      !$0.isNewline
    }
    // A handwritten google.firestore.admin.v1.Index message: name, scope, and four fields.
    let name = "projects/p/databases/(default)/collectionGroups/things/indexes/_"
    var bytes: [UInt8] = [0x0A, UInt8(name.utf8.count)] + Array(name.utf8) + [0x10, 1]
    bytes += [0x1A, 5, 0x0A, 1] + Array("a".utf8) + [0x10, 1]
    bytes += [0x1A, 5, 0x0A, 1] + Array("b".utf8) + [0x18, 1]
    bytes += [0x1A, 5, 0x0A, 1] + Array("c".utf8) + [0x10, 2]
    bytes += [0x1A, 12, 0x0A, 8] + Array("__name__".utf8) + [0x10, 2]
    let padded = token + String(repeating: "=", count: (4 - token.count % 4) % 4)
    let decoded = padded.replacing("-", with: "+").replacing("_", with: "/")
    #expect(Data(base64Encoded: String(decoded)) == Data(bytes))

    let line = try #require(message.split(separator: "indexes of firestore.indexes.json: ").last)
    #expect(isServed(query, by: try Self.runner(String(line))))
  }

  @Test("A field that is summed belongs to the index, and so does the order of names alone")
  func aggregates() throws {
    var sum = Self.query(.field(Self.a, .equal, Self.one))
    sum.aggregatedFields = [Self.b]
    #expect(!isServed(sum, by: try Self.runner()))
    let index = [Self.ordered("a"), Self.ordered("b")].joined(separator: ",")
    #expect(isServed(sum, by: try Self.runner(Self.index(index))))
    var alone = Self.query()
    alone.aggregatedFields = [Self.b]
    #expect(isServed(alone, by: try Self.runner()))
    alone.aggregatedFields = [Self.a, Self.b]
    #expect(!isServed(alone, by: try Self.runner()))
    #expect(isServed(alone, by: try Self.runner(Self.index(index))))

    let names = Self.query(nil, [Query.Order(.documentID, descending: true)])
    #expect(!isServed(names, by: try Self.runner()))
    let declared = Self.index(Self.ordered("__name__", "DESCENDING"))
    #expect(isServed(names, by: try Self.runner(declared)))
    #expect(isServed(Self.query(nil, [Query.Order(.documentID)]), by: try Self.runner()))
  }

  private func refusal(of query: Query, by runner: QueryRunner) throws -> String {
    let error = #expect(throws: (any Error).self) { try runner.prepare(query) }
    return try #require((error as? any StatusConvertible)?.statusMessage)
  }

  @Test("Indexes of one field, of vectors and for several ranges are refused in words of their own")
  func otherRefusals() throws {
    let runner = try Self.runner(
      json: #"{"fieldOverrides": [{"collectionGroup": "things", "fieldPath": "a", "indexes": []}]}"#
    )
    let equality = Query.Filter.field(Self.a, .equal, Self.one)
    let link = "https://console.firebase.google.com/v1/r/project/p/firestore/indexes"
    let ofGroup = try refusal(of: Self.query(equality, isGroup: true), by: try Self.runner())
    let start =
      "The query requires a COLLECTION_GROUP_ASC index for collection things and field a. You can "
      + "create it here: \(link)?create_exemption="
    #expect(ofGroup.hasPrefix(start))
    // A handwritten google.firestore.admin.v1.Index message.
    let name = "projects/p/databases/(default)/collectionGroups/things/fields/a"
    let bytes =
      [0x0A, UInt8(name.utf8.count)] + Array(name.utf8) + [0x10, 2]
      + [0x1A, 5, 0x0A, 1] + Array("a".utf8) + [0x10, 1]
    let token = Data(bytes).base64EncodedString().replacing("=", with: "")
    #expect(ofGroup.dropFirst(start.count).hasPrefix("\(token)\n"))

    let exempted = try refusal(
      of: Self.query(.field(Self.a, .arrayContains, Self.one)),
      by: runner
    )
    #expect(
      exempted.hasPrefix(
        "The query requires a COLLECTION_CONTAINS index for collection things and "
      )
    )
    #expect(exempted.contains("Or add it to the fieldOverrides of firestore.indexes.json: "))
    let corrected = DeclaredIndexes.file(of: runner.neededIndexes(Self.database))
    let contained = Self.query(.field(Self.a, .arrayContains, Self.one))
    #expect(isServed(contained, by: try Self.runner(json: corrected)))

    let search = FindNearest(field: Self.b, vector: [1, 2, 3], measure: .cosine, limit: 1)
    let vectors = try refusal(of: Self.query(equality, findNearest: search), by: try Self.runner())
    let command = """
      Missing vector index configuration. Please create the required index with the following gcloud \
      command: gcloud firestore indexes composite create --project=p --collection-group=things \
      --query-scope=COLLECTION --field-config=order=ASCENDING,field-path=a \
      --field-config=vector-config='{"dimension":"3","flat": "{}"}',field-path=b

      """
    #expect(vectors.hasPrefix(command))

    let ranges = Query.Filter.and([
      .field(Self.a, .lessThan, Self.one), .field(Self.b, .lessThan, Self.one),
    ])
    #expect(
      try refusal(of: Self.query(ranges), by: try Self.runner()).contains(
        " .\nThe query contains range and inequality filters on multiple fields, please refer to "
      )
    )
  }

  @Test("What queries needed makes a file that serves them")
  func file() throws {
    let runner = QueryRunner(logger: Logger(label: "test"))
    let queries = [
      Self.query(Self.bothEqual, [Query.Order(Self.c)]),
      Self.query(.field(Self.a, .equal, Self.one), isGroup: true),
      Self.query(nil, [Query.Order(Self.a, descending: true)], isGroup: true),
      Self.query(.field(Self.b, .arrayContains, Self.one), isGroup: true),
      Self.query(.field(Self.b, .equal, Self.one), [Query.Order(.documentID, descending: true)]),
      Self.query(nil, [Query.Order(Self.a), Query.Order(Self.b, descending: true)], isGroup: true),
    ]
    for query in queries { _ = try runner.prepare(query) }
    let needed = runner.neededIndexes(Self.database)
    #expect(needed.count == queries.count)
    let strict = try Self.runner(json: DeclaredIndexes.file(of: needed))
    for query in queries + [Self.query(nil, [Query.Order(Self.a)])] {
      #expect(isServed(query, by: strict))
    }
  }

  @Test(
    "A malformed file is refused with the place of the mistake",
    arguments: [
      ("[]", "wrong type"), ("{", "JSON"), (#"{"indexs": []}"#, "neither indexes nor"),
      (#"{"indexes": [{"fields": []}]}"#, "collectionGroup"),
      (#"{"indexes": [{"collectionGroup": "c", "queryScope": "X", "fields": []}]}"#, "\"X\""),
      (#"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a"}]}]}"#, "of c"),
      (
        #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "", "order": "ASCENDING"}]}]}"#,
        "not a field path"
      ),
    ]
  )
  func malformed(json: String, words: String) {
    let error = #expect(throws: StatusError.self) { try DeclaredIndexes(json: Data(json.utf8)) }
    #expect(error?.statusMessage.contains(words) == true, "\(error?.statusMessage ?? "")")
  }
}
