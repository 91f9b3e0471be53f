package import DocumentModel
package import TestSupport

/// A generator of documents and queries from small sets of values.
///
/// Small sets make equal values, ties and missing fields frequent.
package struct RandomQueries {
  package var generator: SeededGenerator

  /// The database of all generated documents.
  package static let database = DatabaseName(project: "p")

  /// Returns the name of a document in `database`.
  package static func name(_ path: String) -> DocumentName {
    DocumentName(database: database, path: ResourcePath(slashSeparated: path))
  }

  /// Creates a generator for `seed`.
  package init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
  }

  /// Returns true with the given probability in percent.
  package mutating func chance(_ percent: Int) -> Bool {
    Int.random(in: 0..<100, using: &generator) < percent
  }

  /// Returns a random element.
  package mutating func pick<T>(_ choices: [T]) -> T {
    choices[Int.random(in: 0..<choices.count, using: &generator)]
  }

  /// Returns a random number in a range.
  package mutating func count(_ range: ClosedRange<Int>) -> Int {
    Int.random(in: range, using: &generator)
  }

  // MARK: Documents

  /// Document IDs, including two that differ only in their Unicode form.
  package static let ids = [
    "a", "aa", "a-", "b", "\u{E9}", "e\u{301}", "\u{1F600}", "__id5__", "__id-7__", "z",
  ]
  /// The field paths that filters and orders use.
  package static let paths = [
    FieldPath(["a"]), FieldPath(["b"]), FieldPath(["c"]), FieldPath(["m", "x"]),
    FieldPath(["m", "y.z"]), FieldPath(["m"]),
  ]

  /// Returns a random document path.
  package mutating func path() -> String {
    let collections = pick([
      ["c"], ["c"], ["c"], ["d"], ["c", "c"], ["d", "c"], ["c", "d"], ["c", "c", "c"],
      ["d", "d", "c"],
      ["e"],
    ])
    return collections.map { "\($0)/\(pick(Self.ids))" }.joined(separator: "/")
  }

  /// Returns the fields of a random document.
  package mutating func fields() -> MapValue {
    var fields: MapValue = [:]
    for key in ["a", "b", "c"] where chance(80) { fields[key] = value() }
    if chance(60) {
      var map: MapValue = [:]
      if chance(70) { map["x"] = value() }
      if chance(50) { map["y.z"] = value() }
      fields["m"] = .map(map)
    } else if chance(20) {
      fields["m"] = value()
    }
    return fields
  }

  /// Returns a value that is not an array, map or vector.
  package mutating func scalar() -> FirestoreValue {
    // A shared prefix as long as an index stores, with suffixes that differ after it.
    let long = String(repeating: "l", count: 1494)
    return switch count(0...13) {
    case 0: .null
    case 1: .boolean(chance(50))
    case 2, 3, 4: .integer(Int64(count(-2...3)))
    case 5: pick([.double(.nan), .double(-0.0), .double(1), .double(1.5), .double(.infinity)])
    case 6: pick([.integer(.max), .double(0x1p63), .integer(1 << 53 + 1), .double(0x1p53)])
    case 7: .timestamp(Timestamp(microseconds: Int64(count(0...2))))
    case 8, 9: .string(pick(["", "x", "xy", "\u{0}", "\u{FFFD}", "\u{1F600}"]))
    case 10: .string(long + String(repeating: "l", count: count(0...5)) + pick(["", "p", "q"]))
    case 11:
      .bytes(pick([[], [0], [0, 255], Array(repeating: 7, count: 1600) + [UInt8(count(0...2))]]))
    case 12: .reference(Self.name("c/" + pick(Self.ids)))
    default: .geoPoint(GeoPoint(latitude: Double(count(0...1)), longitude: Double(count(0...1))))
    }
  }

  /// Returns a random value of any type.
  package mutating func value() -> FirestoreValue {
    switch count(0...9) {
    case 0: .array((0..<count(0...3)).map { _ in scalar() })
    case 1: .vector((0..<count(1...2)).map { _ in Double(count(0...1)) })
    case 2:
      .map(
        pick([
          ["k": scalar()], ["k": scalar(), "l": scalar()], ["\u{E9}": scalar()],
          ["\u{E9}": scalar(), "e\u{301}": scalar()],
        ])
      )
    default: scalar()
    }
  }

  // MARK: Queries

  /// Returns a query, possibly invalid, over documents like the given ones.
  package mutating func query(_ documents: [FirestoreDocument]) -> Query {
    let group = chance(40)
    var query = Query(
      database: Self.database,
      collectionID: pick(["c", "c", "c", "d"]),
      allDescendants: group
    )
    if chance(25) {
      query.parent = ResourcePath(slashSeparated: pick(["c", "d"]) + "/" + pick(Self.ids))
    }
    if chance(8) {
      query.collectionID = nil
      query.allDescendants = chance(70)
      if chance(50) { query.filter = nameComparison() }
    } else {
      if chance(75) { query.filter = filter(documents, depth: 0) }
      query.orders = orders()
    }
    let final = ReferenceEvaluator(query: query).orders
    if chance(25) { query.start = cursor(documents, final) }
    if chance(25) { query.end = cursor(documents, final) }
    if chance(40) { query.limit = count(0...12) }
    if chance(20) { query.offset = count(0...4) }
    return query
  }

  /// Returns a search for vectors like those in the documents.
  package mutating func search() -> FindNearest {
    FindNearest(
      field: pick(Self.paths),
      vector: (0..<count(1...2)).map { _ in Double(count(0...2)) },
      measure: pick(FindNearest.Measure.allCases),
      limit: count(1...6),
      resultField: chance(50) ? pick(["a", "d", "m", "y.z"]) : nil,
      threshold: chance(30) ? pick([0, 0.5, 1, 2]) : nil
    )
  }

  private mutating func orders() -> [Query.Order] {
    var orders: [Query.Order] = []
    if chance(50) {
      for path in Self.paths.shuffled(using: &generator).prefix(count(1...2)) {
        orders.append(Query.Order(path, descending: chance(40)))
      }
    }
    if chance(20) { orders.append(Query.Order(.documentID, descending: chance(50))) }
    return orders
  }

  /// Returns an operand for a path; most often the value of one of the documents.
  private mutating func operand(_ documents: [FirestoreDocument], _ path: FieldPath)
    -> FirestoreValue
  {
    for _ in 0..<3 {
      if let value = pick(documents).fields[path] { return value }
    }
    return value()
  }

  private mutating func nameComparison() -> Query.Filter {
    let name: FirestoreValue = .reference(Self.name(path()))
    return chance(30)
      ? .field(.documentID, .in, .array([name, .reference(Self.name(path())), name]))
      : .field(
        .documentID,
        pick([.equal, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual]),
        name
      )
  }

  private mutating func filter(_ documents: [FirestoreDocument], depth: Int) -> Query.Filter {
    if depth < 2, chance(depth == 0 ? 55 : 25) {
      let filters = (0..<count(1...3)).map { _ in filter(documents, depth: depth + 1) }
      return chance(70) ? .and(filters) : .or(filters)
    }
    if chance(8) { return nameComparison() }
    let path = pick(Self.paths)
    if chance(10) { return .unary(path, pick(Array(Query.UnaryOperator.allCases))) }
    let comparison = pick(
      [
        .equal, .equal, .equal, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual,
        .notEqual, .arrayContains, .in, .arrayContainsAny, .notIn,
      ] as [Query.FieldOperator]
    )
    switch comparison {
    case .in, .notIn:
      return .field(
        path,
        comparison,
        .array((0..<count(1...4)).map { _ in operand(documents, path) })
      )
    case .arrayContains:
      if case .array(let elements) = operand(documents, path), let first = elements.first {
        return .field(path, comparison, first)
      }
      return .field(path, comparison, scalar())
    case .arrayContainsAny:
      return .field(path, comparison, .array((0..<count(1...4)).map { _ in scalar() }))
    default:
      return .field(path, comparison, operand(documents, path))
    }
  }

  private mutating func cursor(_ documents: [FirestoreDocument], _ orders: [Query.Order])
    -> Query.Cursor
  {
    let document = pick(documents)
    let values = orders.prefix(count(1...orders.count)).map { order -> FirestoreValue in
      if order.path.isDocumentID { return .reference(document.name) }
      return document.fields[order.path] ?? value()
    }
    return Query.Cursor(values, before: chance(50))
  }
}
