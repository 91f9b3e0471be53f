import DocumentModel
import Foundation
import Testing

@Suite("Codable over values")
struct ValueCodingTests {
  private struct Member: Codable, Equatable {
    var name: String
    var age: Int?
  }

  private enum Role: String, Codable { case trainer, client }

  private struct Everything: Codable, Equatable {
    var flag: Bool
    var count: Int
    var small: UInt8
    var ratio: Double
    var text: String
    var at: Timestamp
    var date: Date
    var place: GeoPoint
    var blob: Data
    var link: URL
    var owner: DocumentName
    var role: Role
    var members: [Member]
    var byName: [String: [Int]]
    var maybe: [Int?]
    var raw: FirestoreValue
    var absent: String?
  }

  private let owner = DocumentName(
    database: DatabaseName(project: "p"),
    path: ResourcePath(["users", "u1"])
  )

  private func fields() throws -> MapValue {
    let at = try #require(Timestamp("2026-07-01T12:00:00.25Z"))
    return [
      "flag": .boolean(true), "count": .integer(-3), "small": .integer(255), "ratio": .double(0.5),
      "text": .string("e\u{301}"), "at": .timestamp(at), "date": .timestamp(at),
      "place": .geoPoint(GeoPoint(latitude: 1, longitude: 2)), "blob": .bytes([0, 255]),
      "link": .string("https://example.com/a"), "owner": .reference(owner),
      "role": .string("client"),
      "members": .array([
        .map(["name": .string("A"), "age": .integer(7)]), .map(["name": .string("B")]),
      ]),
      "byName": .map(["x": .array([.integer(1)])]), "maybe": .array([.integer(1), .null]),
      "raw": .vector([1, 2]),
    ]
  }

  @Test("Every type survives the way through Swift and back, unchanged")
  func roundTrip() throws {
    let fields = try fields()
    let decoded = try ValueDecoder().decode(Everything.self, from: fields)

    #expect(decoded.members == [Member(name: "A", age: 7), Member(name: "B", age: nil)])
    #expect(decoded.absent == nil)
    #expect(try ValueEncoder().encodeFields(decoded) == fields)
  }

  @Test("Whole doubles are integers, integers are doubles, vectors are arrays of doubles")
  func numbers() throws {
    let decoder = ValueDecoder()

    #expect(try decoder.decode(Int.self, from: .double(3)) == 3)
    #expect(try decoder.decode(Double.self, from: .integer(3)) == 3)
    #expect(try decoder.decode([Double].self, from: .vector([1.5])) == [1.5])
    #expect(try decoder.decode([Float].self, from: .array([.integer(1)])) == [1])
  }

  @Test(
    "What does not fit is refused with its path",
    arguments: [
      (["name": .integer(1)], "'name' is an integer, not a string"),
      ([:], "'name' is missing"),
      (["name": .null], "'name' is null, not a string"),
      (
        ["name": .string("A"), "age": .double(1.5)],
        "'age' is a double, not an integer from \(Int.min) to \(Int.max)"
      ),
    ] as [(MapValue, String)]
  )
  func refused(fields: MapValue, message: String) {
    let error = #expect(throws: ValueCodingError.self) {
      try ValueDecoder().decode(Member.self, from: fields)
    }
    #expect(error?.description == message)
  }

  @Test("The path reaches through arrays and maps, and through Swift's own errors")
  func deepPath() throws {
    var wrongMember = try fields()
    wrongMember["members"] = .array([
      .map(["name": .string("A")]), .map(["name": .boolean(true)]),
    ])
    var wrongRole = try fields()
    wrongRole["role"] = .string("owner")

    let member = #expect(throws: ValueCodingError.self) {
      try ValueDecoder().decode(Everything.self, from: wrongMember)
    }
    #expect(member?.path == "members[1].name")
    let role = #expect(throws: ValueCodingError.self) {
      try ValueDecoder().decode(Everything.self, from: wrongRole)
    }
    #expect(role?.path == "role")
    #expect(member?.below("data").path == "data.members[1].name")
    let short = #expect(throws: ValueCodingError.self) {
      try ValueDecoder().decode(Pair.self, from: .array([.integer(1)]))
    }
    #expect(short?.description == "has only 1 elements")
  }

  private struct Pair: Decodable {
    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      _ = try container.decode(Int.self)
      _ = try container.decode(Int.self)
    }
  }

  @Test("Nil is no field, a document needs named fields, and what cannot be stored is refused")
  func encoding() throws {
    let encoder = ValueEncoder()

    #expect(try encoder.encodeFields(Member(name: "A")) == ["name": .string("A")])
    #expect(try encoder.encode([1, nil]) == .array([.integer(1), .null]))
    #expect(throws: ValueCodingError.self) { try encoder.encodeFields([1]) }
    let error = #expect(throws: ValueCodingError.self) { try encoder.encode(["n": UInt64.max]) }
    #expect(error?.path == "n")
    #expect(throws: ValueCodingError.self) { try encoder.encode(Date(timeIntervalSince1970: 1e15)) }
  }

  private class Base: Codable {
    var id = "b"
  }

  private final class Derived: Base {
    var extra = 1

    override init() { super.init() }

    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      extra = try container.decode(Int.self, forKey: .extra)
      try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(extra, forKey: .extra)
      try super.encode(to: container.superEncoder())
    }

    enum Keys: CodingKey { case extra }
  }

  @Test("Nested, keyed and super containers work")
  func containers() throws {
    let value = try ValueEncoder().encode(Derived())

    #expect(value == .map(["extra": .integer(1), "super": .map(["id": .string("b")])]))
    #expect(try ValueDecoder().decode(Derived.self, from: value).id == "b")
  }

  @Test("In JSON's dialect bytes are base64, dates follow the strategy, huge integers are wrapped")
  func jsonDialect() throws {
    let date = Date(timeIntervalSince1970: 1_000.25)
    let strategies: [(JSONDates, FirestoreValue)] = [
      (.secondsSince2001, .double(date.timeIntervalSinceReferenceDate)),
      (.millisecondsSince1970, .double(1_000_250)),
      (.rfc3339, .string("1970-01-01T00:16:40.250Z")),
    ]
    for (strategy, written) in strategies {
      let encoder = ValueEncoder(dialect: .json(dates: strategy))
      let decoder = ValueDecoder(dialect: .json(dates: strategy))

      #expect(try encoder.encode(date) == written)
      #expect(try decoder.decode(Date.self, from: written) == date)
    }
    let encoder = ValueEncoder(dialect: .json(dates: .rfc3339))
    let decoder = ValueDecoder(dialect: .json(dates: .rfc3339))
    let huge = try encoder.encode(UInt64.max)
    #expect(try decoder.decode(UInt64.self, from: huge) == .max)
    #expect(throws: ValueCodingError.self) { try decoder.decode(Int64.self, from: huge) }
    #expect(try encoder.encode(Data([0, 255])) == .string("AP8="))
    #expect(try decoder.decode(Data.self, from: .string("AP8=")) == Data([0, 255]))
    let point = GeoPoint(latitude: 1, longitude: 2)
    #expect(try decoder.decode(GeoPoint.self, from: encoder.encode(point)) == point)
    #expect(try decoder.decode(DocumentName.self, from: encoder.encode(owner)) == owner)
  }

  @Test("Models that hold our types go through JSONEncoder too")
  func foreignCoders() throws {
    struct Model: Codable, Equatable {
      var at: Timestamp
      var place: GeoPoint
      var raw: FirestoreValue
    }
    let model = Model(
      at: Timestamp(microseconds: 1_000_001),
      place: GeoPoint(latitude: 1, longitude: 2),
      raw: .map(["a": .array([.null, .boolean(true), .integer(1), .double(1.5), .string("x")])])
    )
    let decoded = try JSONDecoder().decode(Model.self, from: JSONEncoder().encode(model))

    #expect(decoded == model)
  }

  @Test(
    "A decimal is a number, in documents and in JSON, and is read from every kind of number",
    arguments: [ValueDialect.firestore, .json(dates: .rfc3339)]
  )
  func decimals(dialect: ValueDialect) throws {
    struct Price: Codable, Equatable {
      var amount: Decimal
      var discount: Decimal?
    }
    let encoder = ValueEncoder(dialect: dialect)
    let decoder = ValueDecoder(dialect: dialect)
    for digits in ["19.99", "-0.1", "3.133", "20", "1234567890.12", "0", "1e100"] {
      let price = Price(amount: try #require(Decimal(string: digits)))
      let fields = try encoder.encodeFields(price)

      #expect(fields == ["amount": .double(try #require(Double(digits)))])
      #expect(try decoder.decode(Price.self, from: fields) == price)
    }
    #expect(try decoder.decode(Decimal.self, from: .integer(.max)) == Decimal(Int64.max))
    #expect(throws: ValueCodingError.self) {
      try decoder.decode(Decimal.self, from: .double(1e300))
    }
    #expect(throws: ValueCodingError.self) {
      try decoder.decode(Decimal.self, from: .string("19.99"))
    }
  }

  @Test("JSON of any value is read up to a nesting of 128 levels")
  func nestedJSON() throws {
    func decode(_ levels: Int) throws -> FirestoreValue {
      let lists = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
      return try JSONDecoder().decode(FirestoreValue.self, from: Data(lists.utf8))
    }

    #expect(throws: Never.self) { try decode(128) }
    #expect(throws: DecodingError.self) { try decode(200) }
  }

  @Test("A date's microseconds survive, before 1970 too", arguments: [1_753_000_000.123456, -1.5])
  func dates(seconds: Double) throws {
    let timestamp = try #require(Timestamp(Date(timeIntervalSince1970: seconds)))

    #expect(timestamp.microseconds == Int64((seconds * 1e6).rounded()))
    #expect(Timestamp(timestamp.date) == timestamp)
  }

  private struct InJSON: Decodable {
    var at: Timestamp?
    var date: Date?
    var place: GeoPoint?
    var blob: Data?
    var owner: DocumentName?
  }

  @Test(
    "A text that is no value of the type is refused with the form in JSON",
    arguments: [
      ("at", "a timestamp, in JSON text such as \"2026-07-01T12:00:00Z\""),
      ("date", "a date, in JSON a number of milliseconds since 1970-01-01, such as 1782907200000"),
      ("place", "a geo point, in JSON {\"latitude\": 52.5, \"longitude\": 13.4}"),
      ("blob", "bytes, in JSON text in base64, such as \"aGVsbG8=\""),
      ("owner", "a reference, in JSON text such as "),
    ]
  )
  func formInJSON(field: String, words: String) {
    let decoder = ValueDecoder(dialect: .json(dates: .millisecondsSince1970))
    let error = #expect(throws: ValueCodingError.self) {
      try decoder.decode(InJSON.self, from: [field: .string("?")])
    }
    #expect(error?.description.hasPrefix("'\(field)' is a string, not \(words)") == true)

    let stored = #expect(throws: ValueCodingError.self) {
      try ValueDecoder().decode(InJSON.self, from: [field: .string("?")])
    }
    #expect(stored?.description.contains("JSON") == false)
  }
}
