/// The place of a node in the Realtime Database.
package struct DatabasePath: Sendable, Hashable {
  package var keys: [String]

  package init(_ keys: [String] = []) {
    self.keys = keys
  }

  package static let root = DatabasePath()
  /// The maximum number of keys.
  package static let depthMax = 32

  /// Creates the path from keys joined by slashes; empty keys are left out.
  ///
  /// Returns nil if a key is not valid, or if there are too many.
  package init?(parsing text: String) {
    keys = text.split(separator: "/" as Character).map { String($0) }
    guard keys.count <= Self.depthMax, keys.allSatisfy({ DatabaseKey.isValid($0) }) else {
      return nil
    }
  }

  package var isRoot: Bool { keys.isEmpty }
  package var count: Int { keys.count }
  package var parent: DatabasePath { DatabasePath(keys.dropLast()) }

  package func child(_ key: String) -> DatabasePath {
    DatabasePath(keys + [key])
  }

  package func appending(_ path: DatabasePath) -> DatabasePath {
    DatabasePath(keys + path.keys)
  }

  /// Returns true if the path is `ancestor` or below it.
  package func starts(with ancestor: DatabasePath) -> Bool {
    keys.starts(with: ancestor.keys) { $0.isExactly($1) }
  }

  package static func == (left: DatabasePath, right: DatabasePath) -> Bool {
    left.count == right.count && left.starts(with: right)
  }

  package func hash(into hasher: inout Hasher) {
    for key in keys { key.hashExactly(into: &hasher) }
  }

  /// Returns the path below an ancestor's first `count` keys.
  package func dropFirst(_ count: Int) -> DatabasePath {
    DatabasePath(Array(keys.dropFirst(count)))
  }

  /// Returns the path's first `count` keys.
  package func prefix(_ count: Int) -> DatabasePath {
    DatabasePath(Array(keys.prefix(count)))
  }

  private init(_ keys: some Sequence<String>) {
    self.keys = Array(keys)
  }
}

extension DatabasePath: Comparable {
  /// The order has a path directly before all paths below it.
  package static func < (left: DatabasePath, right: DatabasePath) -> Bool {
    left.keys.lexicographicallyPrecedes(right.keys) { $0.precedes($1) }
  }
}

extension DatabasePath: CustomStringConvertible {
  /// The keys with a slash before each; `/` for the root.
  package var description: String {
    keys.isEmpty ? "/" : keys.map { "/" + $0 }.joined()
  }
}
