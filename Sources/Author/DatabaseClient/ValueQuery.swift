import DatabaseModel
import JSONText
import OutboundHTTP

/// A selection of the children of a value, in an order.
///
/// ```swift
/// let best = database.reference("scores").queryOrdered(byChild: "points").queryLimited(toLast: 3)
/// for score in try await best.get().children { … }
/// ```
///
/// The names are those of Firebase's client for Swift. A query that orders by a child or by values
/// needs an index in the rules. A second order, start, end or limit replaces the first.
public struct ValueQuery: Sendable {
  /// The value whose children are selected.
  public let reference: DatabaseReference
  private var order = Order.key
  private var bounds: [String: QueryValue] = [:]
  private var limit: (name: String, count: Int)?

  private enum Order: Sendable {
    case key, value
    case child(String)
  }

  init(reference: DatabaseReference) {
    self.reference = reference
  }

  /// Orders by the value at a path below each child, such as `points` or `stats/points`.
  public func queryOrdered(byChild path: String) -> ValueQuery { with { $0.order = .child(path) } }

  /// Orders by the keys of the children.
  public func queryOrderedByKey() -> ValueQuery { with { $0.order = .key } }

  /// Orders by the values of the children themselves.
  public func queryOrderedByValue() -> ValueQuery { with { $0.order = .value } }

  /// Selects children from a value on.
  public func queryStarting(atValue value: QueryValue) -> ValueQuery { bound("startAt", value) }

  /// Selects children after a value.
  public func queryStarting(afterValue value: QueryValue) -> ValueQuery {
    bound("startAfter", value)
  }

  /// Selects children up to a value.
  public func queryEnding(atValue value: QueryValue) -> ValueQuery { bound("endAt", value) }

  /// Selects children before a value.
  public func queryEnding(beforeValue value: QueryValue) -> ValueQuery {
    bound("endBefore", value)
  }

  /// Selects children with a value.
  public func queryEqual(toValue value: QueryValue) -> ValueQuery { bound("equalTo", value) }

  /// Selects the first children in the order.
  public func queryLimited(toFirst count: Int) -> ValueQuery {
    with { $0.limit = ("limitToFirst", count) }
  }

  /// Selects the last children in the order.
  public func queryLimited(toLast count: Int) -> ValueQuery {
    with { $0.limit = ("limitToLast", count) }
  }

  /// Reads the selected children.
  ///
  /// Throws `DatabaseError` as `DatabaseReference.get()` does, and `failedPrecondition` if the
  /// rules lack an index.
  public func get() async throws -> DatabaseSnapshot {
    let response = try await reference.database.calls.send(try call())
    return snapshot(try DatabaseSnapshot.node(response.body))
  }

  /// Returns a sequence of the selected children now and after every change.
  ///
  /// See `ValueSnapshots` for its behavior.
  public func observe() -> ValueSnapshots { ValueSnapshots(query: self) }

  func call() throws -> DatabaseCalls.Call {
    DatabaseCalls.Call(keys: try reference.validKeys(), query: parameters)
  }

  func snapshot(_ node: DatabaseNode) -> DatabaseSnapshot {
    let order: DatabaseModel.DatabaseQuery.Order? =
      switch self.order {
      case .key: nil
      case .value: .value
      case .child(let path): .child(DatabasePath(path.split(separator: "/").map { String($0) }))
      }
    return DatabaseSnapshot(
      reference: reference,
      node: node,
      order: order.map { DatabaseQuery(order: $0) }
    )
  }

  private var parameters: [(name: String, value: String)] {
    guard !bounds.isEmpty || limit != nil else { return [] }
    let order =
      switch order {
      case .key: "$key"
      case .value: "$value"
      case .child(let path): path
      }
    var parameters = [(name: "orderBy", value: jsonQuoted(order))]
    for (name, value) in bounds.sorted(by: { $0.key < $1.key }) {
      parameters.append((name, String(decoding: value.json.bytes, as: UTF8.self)))
    }
    if let limit { parameters.append((limit.name, String(limit.count))) }
    return parameters
  }

  private func bound(_ name: String, _ value: QueryValue) -> ValueQuery {
    with { $0.bounds[name] = value }
  }

  private func with(_ change: (inout ValueQuery) -> Void) -> ValueQuery {
    var query = self
    change(&query)
    return query
  }
}

extension DatabaseReference {
  /// Orders the children by the value at a path below each; see `ValueQuery`.
  public func queryOrdered(byChild path: String) -> ValueQuery {
    ValueQuery(reference: self).queryOrdered(byChild: path)
  }

  /// Orders the children by their keys; see `ValueQuery`.
  public func queryOrderedByKey() -> ValueQuery { ValueQuery(reference: self) }

  /// Orders the children by their values; see `ValueQuery`.
  public func queryOrderedByValue() -> ValueQuery {
    ValueQuery(reference: self).queryOrderedByValue()
  }
}

/// A value with which a query compares: null, a boolean, a number or a text, also as a literal.
public enum QueryValue: Sendable, Hashable {
  case null
  case boolean(Bool)
  case number(Double)
  case string(String)

  var json: JSONValue {
    switch self {
    case .null: .null
    case .boolean(let flag): .boolean(flag)
    case .number(let number): .number(number)
    case .string(let text): .string(text)
    }
  }
}

extension QueryValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral
{
  /// Creates a text.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates a number.
  public init(integerLiteral value: Int) { self = .number(Double(value)) }
  /// Creates a number.
  public init(floatLiteral value: Double) { self = .number(value) }
  /// Creates a boolean.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// Creates null.
  public init(nilLiteral: ()) { self = .null }
}
