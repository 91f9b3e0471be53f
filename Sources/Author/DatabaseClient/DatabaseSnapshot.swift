import DatabaseModel

/// A value of a Realtime Database as of one moment.
public struct DatabaseSnapshot: Sendable {
  /// The place of the value.
  public let reference: DatabaseReference
  let node: DatabaseNode
  /// The order of the children; nil for the order of their keys.
  private var order: DatabaseQuery?

  init(reference: DatabaseReference, node: DatabaseNode, order: DatabaseQuery? = nil) {
    self.reference = reference
    self.node = node
    self.order = order
  }

  init(parsing json: [UInt8], of reference: DatabaseReference) throws {
    self.init(reference: reference, node: try Self.node(json))
  }

  /// Parses a value that the server sent; throws `DatabaseError`.
  static func node(_ json: [UInt8]) throws -> DatabaseNode {
    do {
      return try DatabaseInput(parsing: json).node
    } catch {
      throw DatabaseError(.internal, "the server's response is not a value: \(error.message)")
    }
  }

  /// The last key of the path; nil for the root.
  public var key: String? { reference.key }

  /// True if there is a value.
  public var exists: Bool { !node.isEmpty }

  /// Returns the value as a type; throws `ValueCodingError` if it does not decode.
  ///
  /// Nil is the value of an optional type if there is none.
  public func data<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    try node.decode(type)
  }

  /// The children, in the order of the query.
  public var children: [DatabaseSnapshot] {
    let children = node.children
    guard let order else { return children.map { child($0.key.text, $0.node) } }
    let entries = children.map { order.entry($0.key, $0.node) }
    return order.select(entries).map { child($0.key.text, node[$0.key.text]) }
  }

  /// Returns the value at a path below this one.
  public func child(_ path: String) -> DatabaseSnapshot {
    path.split(separator: "/").reduce(self) { $0.child(String($1), $0.node[String($1)]) }
  }

  private func child(_ key: String, _ node: DatabaseNode) -> DatabaseSnapshot {
    DatabaseSnapshot(reference: reference.child(key), node: node)
  }
}
