import DatabaseModel
import DatabaseTree
import HTTPSupport
import JSONText

/// The form of queries in the parameters of a URL.
extension DatabaseQuery {
  /// Parses the parameters of a query; nil if there are none.
  static func parse(_ parameters: QueryParameters) throws(DatabaseError) -> DatabaseQuery? {
    let names = [
      "startAt", "startAfter", "endAt", "endBefore", "equalTo", "limitToFirst", "limitToLast",
    ]
    guard let orderBy = parameters["orderBy"] else {
      guard names.allSatisfy({ parameters[$0] == nil }) else {
        throw .invalid("orderBy must be defined when other query parameters are defined")
      }
      return nil
    }
    var query = DatabaseQuery(order: try order(orderBy))
    try query.parseBounds(parameters)
    query.limit = try limit(parameters)
    return query
  }

  private static func order(_ text: String) throws(DatabaseError) -> Order {
    // Whatever the text is instead, the answer is the same.
    guard let name = (try? JSONTree.parse(Array(text.utf8)))?.text, !name.isEmpty else {
      throw invalidOrder
    }
    switch name {
    case "$key": return .key
    case "$value": return .value
    case "$priority": return .priority
    default:
      guard let path = DatabasePath(parsing: name), !path.isRoot else { throw invalidOrder }
      return .child(path)
    }
  }

  private static let invalidOrder = DatabaseError.invalid(
    "orderBy must be a valid JSON encoded path"
  )

  private mutating func parseBounds(_ parameters: QueryParameters) throws(DatabaseError) {
    let (startAt, startAfter) = (parameters["startAt"], parameters["startAfter"])
    let (endAt, endBefore) = (parameters["endAt"], parameters["endBefore"])
    guard startAt == nil || startAfter == nil, endAt == nil || endBefore == nil else {
      throw .invalid(
        "startAt and startAfter, and endAt and endBefore, cannot be defined together"
      )
    }
    if let equalTo = parameters["equalTo"] {
      guard startAt == nil, startAfter == nil, endAt == nil, endBefore == nil else {
        throw .invalid(
          "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"
        )
      }
      start = try bound(equalTo, isInclusive: true)
      end = start
      return
    }
    start = try bound(startAt ?? startAfter, isInclusive: startAfter == nil)
    end = try bound(endAt ?? endBefore, isInclusive: endBefore == nil)
  }

  /// Parses `value` or `value,"key"`.
  private func bound(_ text: String?, isInclusive: Bool) throws(DatabaseError) -> Bound? {
    guard let text else { return nil }
    guard case .array(let parts)? = try? JSONTree.parse(Array("[\(text)]".utf8)),
      (1...2).contains(parts.count)
    else { throw .invalid("Constraint index field must be a JSON primitive") }
    var key: BoundKey?
    if parts.count == 2 {
      guard let text = parts[1].text else {
        throw .invalid("Constraint key field must be a string")
      }
      key = .key(DatabaseKey(text))
    }
    return try Bound(parts[0], key: key, isInclusive: isInclusive, in: order)
  }

  private static func limit(_ parameters: QueryParameters) throws(DatabaseError) -> Limit? {
    let first = try count(parameters, "limitToFirst")
    let last = try count(parameters, "limitToLast")
    switch (first, last) {
    case (nil, nil): return nil
    case (let count?, nil): return Limit(count, isFromEnd: false)
    case (nil, let count?): return Limit(count, isFromEnd: true)
    case (_?, _?): throw .invalid("Only one of limitToFirst and limitToLast can be specified")
    }
  }

  /// Parses a limit; nil if the parameter is missing.
  static func count(
    _ parameters: QueryParameters,
    _ name: String
  ) throws(DatabaseError) -> Int? {
    guard let text = parameters[name] else { return nil }
    guard let count = Int(text), (1...limitMax).contains(count) else {
      throw .invalid("\(name) must be a positive integer")
    }
    return count
  }
}
