/// A tree of the Realtime Database that is read piece by piece, valid while its owner allows.
///
/// The methods throw what the storage behind the tree throws. A path without a node is empty.
package protocol DatabaseView {
  /// Returns the value of a leaf; nil for an object, and if there is no node.
  func leaf(at path: DatabasePath) throws -> DatabaseLeaf?
  /// Returns the priority of a node; nil if it has none, and if there is no node.
  func priority(at path: DatabasePath) throws -> DatabaseLeaf?
  func exists(at path: DatabasePath) throws -> Bool
  /// Calls `body` for the keys of the children, in order, until it returns false.
  func forEachChild(
    at path: DatabasePath,
    _ body: (_ key: DatabaseKey) throws -> Bool
  ) throws
}

extension DatabaseNode: DatabaseView {
  package func leaf(at path: DatabasePath) -> DatabaseLeaf? { node(at: path).leaf }
  package func priority(at path: DatabasePath) -> DatabaseLeaf? { node(at: path).priority }
  package func exists(at path: DatabasePath) -> Bool { !node(at: path).isEmpty }

  package func forEachChild(
    at path: DatabasePath,
    _ body: (_ key: DatabaseKey) throws -> Bool
  ) rethrows {
    for child in node(at: path).children {
      guard try body(child.key) else { return }
    }
  }
}
