package import DatabaseModel

/// A write that is applied completely or not at all.
package struct DatabaseWrite: Sendable, Hashable {
  package var operation: Operation
  /// The condition of a transaction; nil for a write without one.
  package var condition: Condition?
  /// True if no function runs for the write, as imports want it.
  package var disablesTriggers = false

  package enum Operation: Sendable, Hashable {
    /// Replaces the node at a path.
    case set(DatabasePath, DatabaseInput)
    /// Replaces the priority of the node at a path.
    case setPriority(DatabasePath, DatabaseInput)
    /// Replaces several nodes at paths below `path`, none of which is above another.
    case merge(DatabasePath, [Member])
  }

  package struct Member: Sendable, Hashable {
    /// The path below the merge's path.
    package var path: DatabasePath
    /// True if the priority at the path is written.
    package var isPriority: Bool
    package var value: DatabaseInput

    package init(path: DatabasePath, isPriority: Bool = false, value: DatabaseInput) {
      self.path = path
      self.isPriority = isPriority
      self.value = value
    }
  }

  /// What the node at the path must be for the write to be applied.
  package enum Condition: Sendable, Hashable {
    /// The hash of the node, as Firebase's clients compute it; empty for no node.
    case hash(String)
  }

  package init(
    _ operation: Operation,
    condition: Condition? = nil,
    disablesTriggers: Bool = false
  ) {
    self.operation = operation
    self.condition = condition
    self.disablesTriggers = disablesTriggers
  }

  /// The path of the operation, which contains all locations that it writes.
  package var path: DatabasePath {
    switch operation {
    case .set(let path, _), .setPriority(let path, _), .merge(let path, _): path
    }
  }
}
