import DocumentModel
import TestSupport
import Testing

@Suite("Order of values")
struct ValueOrderTests {
  private static func reference(_ path: String, project: String = "p", database: String = "d")
    -> FirestoreValue
  {
    .reference(
      DocumentName(
        database: DatabaseName(project: project, database: database),
        path: ResourcePath(slashSeparated: path)
      )
    )
  }

  private static func point(_ latitude: Double, _ longitude: Double) -> FirestoreValue {
    .geoPoint(GeoPoint(latitude: latitude, longitude: longitude))
  }

  private static let two53: Int64 = 1 << 53

  /// The documented order; values in the same row are equal.
  private static let table: [[FirestoreValue]] = [
    [.null],
    [.boolean(false)],
    [.boolean(true)],
    [.double(.nan), .double(-.nan), .double(.signalingNaN)],
    [.double(-.infinity)],
    [.double(-.greatestFiniteMagnitude)],
    [.double((-0x1p63).nextDown)],
    [.integer(.min), .double(-0x1p63)],
    [.integer(.min + 1)],
    [.double((-0x1p63).nextUp), .integer(.min + 1024)],
    [.integer(-two53 - 1)],
    [.integer(-two53), .double(-0x1p53)],
    [.double(-1.5)],
    [.integer(-1), .double(-1)],
    [.double(-.leastNonzeroMagnitude)],
    [.integer(0), .double(0), .double(-0.0)],
    [.double(.leastNonzeroMagnitude)],
    [.double(0.5)],
    [.integer(1), .double(1)],
    [.double(1.5)],
    [.integer(2)],
    [.integer(two53), .double(0x1p53)],
    [.integer(two53 + 1)],
    [.integer(two53 + 2), .double(0x1p53 + 2)],
    [.integer(.max - 1024)],
    [.integer(.max)],
    [.double(0x1p63)],
    [.double(.infinity)],
    [.timestamp(Timestamp(microseconds: -62_135_596_800_000_000))],
    [.timestamp(Timestamp(microseconds: -1))],
    [.timestamp(Timestamp(microseconds: 0))],
    [.timestamp(Timestamp(microseconds: 1))],
    [.string("")],
    [.string("\0")],
    [.string("\0\0")],
    [.string("\u{1}")],
    [.string("a")],
    [.string("a\0")],
    [.string("aa")],
    [.string("b")],
    // Decomposed before composed: the order compares bytes, not canonical equivalents.
    [.string("e\u{301}")],
    [.string("\u{E9}")],
    // The order is by code points. In UTF-16 the surrogates of U+1F600 would come first.
    [.string("\u{FF5E}")],
    [.string("\u{1F600}")],
    [.bytes([])],
    [.bytes([0])],
    [.bytes([0, 0])],
    [.bytes([0, 1])],
    [.bytes([1])],
    [.bytes([0xFF])],
    [reference("c/d", project: "o", database: "z")],
    [reference("c/__id-7__")],
    [reference("c/__id7__")],
    [reference("c/__id7__/x/y")],
    [reference("c/__id10__")],
    [reference("c/__id007__")],
    [reference("c/a")],
    [reference("c/a/b/c")],
    [reference("c/b")],
    [reference("c/a", database: "e")],
    [reference("c/a", project: "q")],
    [point(-90, 180)],
    [point(0, -1), point(-0.0, -1)],
    [point(0, 0), point(0, -0.0)],
    [point(1, -180)],
    [.array([])],
    [.array([.null])],
    [.array([.integer(1)]), .array([.double(1)])],
    [.array([.integer(1), .integer(0)])],
    [.array([.integer(2)])],
    [.array([.string("a")])],
    [.array([.map([:])])],
    [.vector([1])],
    [.vector([3])],
    [.vector([.nan, 5])],
    [.vector([0, 0]), .vector([-0.0, 0])],
    [.vector([0, 1])],
    [.map([:])],
    [.map(["a": .integer(1)]), .map(["a": .double(1)])],
    [.map(["a": .integer(1), "b": .integer(0)])],
    [.map(["a": .integer(2)])],
    [.map(["aa": .null])],
    [.map(["b": .integer(0)])],
  ]

  @Test("The published table holds for every pair, and keys agree with it")
  func publishedTable() {
    let flat = Self.table.enumerated().flatMap { row, values in values.map { (row, $0) } }
    for (leftRow, left) in flat {
      for (rightRow, right) in flat {
        let expected: Ordering =
          leftRow < rightRow ? .less : leftRow == rightRow ? .equal : .greater
        #expect(ValueOrder.compare(left, right) == expected, "\(left) ? \(right)")
        #expect(ValueOrder.areEqual(left, right) == (expected == .equal))
        let keys = ValueOrder.compareBytes(Self.key([left]), Self.key([right]))
        #expect(keys == expected, "keys of \(left) ? \(right)")
      }
    }
  }

  @Test("Keys order as values do, ascending, descending and in several parts")
  func keysOrderAsValues() {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<3000 {
      let a = values.value()
      let b = Bool.random(using: &values.random) ? values.value() : values.neighbour(of: a)
      let c = values.value()
      let d = values.value()
      let first = ValueOrder.compare(a, b)
      let second = ValueOrder.compare(c, d)

      #expect(ValueOrder.compare(b, a) == first.reversed)
      #expect(compareKeys([(a, false)], [(b, false)]) == first, "\(a) ? \(b)")
      #expect(compareKeys([(a, true)], [(b, true)]) == first.reversed, "\(a) ? \(b)")
      for (up, down) in [(false, true), (true, false), (true, true)] {
        let wanted =
          first != .equal ? (up ? first.reversed : first) : down ? second.reversed : second
        #expect(
          compareKeys([(a, up), (c, down)], [(b, up), (d, down)]) == wanted,
          "\(a), \(c) ? \(b), \(d)"
        )
      }
    }
  }

  @Test("No key is the beginning of another")
  func keysArePrefixFree() {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<3000 {
      let a = values.value()
      let b = values.neighbour(of: a)
      guard ValueOrder.compare(a, b) != .equal else { continue }
      let keys = (Self.key([a]), Self.key([b]))
      #expect(!keys.0.starts(with: keys.1) && !keys.1.starts(with: keys.0), "\(a), \(b)")
    }
  }

  @Test("The order is transitive")
  func orderIsTransitive() {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<2000 {
      let a = values.value()
      let b = values.neighbour(of: a)
      let c = values.neighbour(of: b)
      let sorted = [c, a, b].sorted { ValueOrder.compare($0, $1) == .less }
      #expect(ValueOrder.compare(sorted[0], sorted[1]) != .greater)
      #expect(ValueOrder.compare(sorted[1], sorted[2]) != .greater)
      #expect(ValueOrder.compare(sorted[0], sorted[2]) != .greater, "\(sorted)")
    }
  }

  @Test("Equality is exact, and equal values hash alike")
  func equalityIsExact() {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<2000 {
      let a = values.value()
      let b = values.neighbour(of: a)
      #expect(a == a)
      #expect(a.hashValue == a.hashValue)
      if a == b {
        #expect(a.hashValue == b.hashValue)
        #expect(ValueOrder.areEqual(a, b))
      }
    }
    #expect(FirestoreValue.integer(3) != .double(3))
    #expect(FirestoreValue.double(0) != .double(-0.0))
    #expect(FirestoreValue.double(.nan) == .double(-.nan))
    #expect(FirestoreValue.vector([.nan]) == .vector([.nan]))
    #expect(Self.point(0, 0) != Self.point(-0.0, 0))
  }

  @Test("Text that only Unicode takes for the same is different everywhere")
  func identityIsBytes() {
    let composed = "\u{E9}"
    let decomposed = "e\u{301}"
    let names = [composed, decomposed].map {
      DocumentName(database: DatabaseName(project: "p"), path: ResourcePath(["c", $0]))
    }

    #expect(FirestoreValue.string(composed) != .string(decomposed))
    #expect(FirestoreValue.map([composed: .null]) != .map([decomposed: .null]))
    #expect(names[0] != names[1])
    #expect(Set(names).count == 2)
    #expect(FirestoreValue.reference(names[0]) != .reference(names[1]))
    #expect(!ValueOrder.areEqual(.reference(names[0]), .reference(names[1])))
    #expect(FieldPath([composed]) != FieldPath([decomposed]))
    #expect(!FieldPath([composed, "a"]).isBelowOrEqual(to: FieldPath([decomposed])))
    #expect(DatabaseName(project: composed) != DatabaseName(project: decomposed))
  }

  @Test("Long text is cut in keys and says so; equal beginnings tie")
  func truncates() {
    let shared = String(repeating: "x", count: KeyEncoder.truncationBytes)
    var exact = KeyEncoder()
    exact.append(.string(shared))
    var long = KeyEncoder()
    long.append(.array([.string(shared + "a")]))
    var longer = KeyEncoder()
    longer.append(.array([.string(shared + "b")]))

    #expect(!exact.truncated)
    #expect(long.truncated)
    #expect(long.bytes == longer.bytes)
  }

  @Test("Paths order as their keys, and below a path is a prefix of it")
  func pathKeys() {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<2000 {
      let a = values.documentName().path
      let b =
        Bool.random(using: &values.random)
        ? values.documentName().path
        : Bool.random(using: &values.random) ? a.parent : a.appending(values.id())
      let expected: Ordering = a < b ? .less : b < a ? .greater : .equal
      #expect(
        ValueOrder.compareBytes(Self.key(path: a), Self.key(path: b)) == expected,
        "\(a.segments) ? \(b.segments)"
      )
      #expect((expected == .equal) == (a == b))
      var open = KeyEncoder()
      open.append(openPath: a)
      #expect(Self.key(path: b).starts(with: open.bytes) == b.isBelowOrEqual(to: a))
    }
  }

  @Test("A class's tag begins the keys of its values, and of no others")
  func tags() {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<500 {
      let value = values.value()
      #expect(Self.key([value]).first == KeyEncoder.tag(of: ValueOrder.typeClass(value)))
    }
    let classes: [ValueOrder.TypeClass] = [
      .null, .boolean, .number, .timestamp, .string, .bytes, .reference, .geoPoint, .array, .vector,
      .map,
    ]
    let tags = classes.map(KeyEncoder.tag)
    #expect(tags == tags.sorted())
    #expect(Set(tags).count == classes.count)
  }

  @Test(
    "Numeric ids are those of their canonical spelling",
    arguments: [
      ("__id7__", 7), ("__id-9223372036854775808__", Int64.min), ("__id0__", 0), ("__id07__", nil),
      ("__id-0__", nil), ("__id+1__", nil), ("__id9223372036854775808__", nil), ("__id__", nil),
      ("id7", nil), ("__id7_", nil), ("__id٧__", nil), ("__id7__\u{301}", nil),
    ]
  )
  func numericIDs(id: String, number: Int64?) {
    #expect(ValueOrder.numericID(id) == number)
  }

  @Test("A numeric id is one of a document unless its number is 0")
  func flawsOfNumericIDs() {
    #expect(ResourceID.flaw(of: "__id7__", isCollection: false) == nil)
    #expect(ResourceID.flaw(of: "__id-7__", isCollection: false) == nil)
    #expect(ResourceID.flaw(of: "__id0__", isCollection: false) == .isReserved)
    #expect(ResourceID.flaw(of: "__id7__", isCollection: true) == .isReserved)
  }

  private static func key(_ values: [FirestoreValue]) -> [UInt8] {
    var encoder = KeyEncoder()
    for value in values { encoder.append(value) }
    return encoder.bytes
  }

  private static func key(path: ResourcePath) -> [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(path: path)
    return encoder.bytes
  }

  private func compareKeys(
    _ left: [(FirestoreValue, descending: Bool)],
    _ right: [(FirestoreValue, descending: Bool)]
  ) -> Ordering {
    let keys = [left, right].map { parts in
      var encoder = KeyEncoder()
      for (value, descending) in parts { encoder.append(value, descending: descending) }
      return encoder.bytes
    }
    return ValueOrder.compareBytes(keys[0], keys[1])
  }
}
