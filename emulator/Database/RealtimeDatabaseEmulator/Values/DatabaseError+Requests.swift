import DatabaseModel
import DatabaseTree

extension DatabaseError {
  static let invalidPath = DatabaseError(.invalid, "Invalid path: Invalid token in path")

  /// Creates the error for a value that cannot be written.
  init(_ error: DatabaseDataError) {
    self.init(.invalid, error.message)
  }

  static func invalid(_ message: String) -> DatabaseError {
    DatabaseError(.invalid, message)
  }
}

extension DatabasePath {
  /// Parses a path as clients write it: keys that are joined by slashes.
  init(clientText text: String) throws(DatabaseError) {
    guard let path = DatabasePath(parsing: text) else { throw .invalidPath }
    self = path
  }
}

/// The place that a client reads or writes: a node, or the priority of one.
struct DatabaseLocation: Hashable {
  var path: DatabasePath
  var isPriority = false

  private static let priorityKey = ".priority"

  init(path: DatabasePath, isPriority: Bool) {
    self.path = path
    self.isPriority = isPriority
  }

  init(keys: [String]) throws(DatabaseError) {
    isPriority = keys.last == Self.priorityKey
    let keys = isPriority ? Array(keys.dropLast()) : keys
    guard keys.count <= DatabasePath.depthMax, keys.allSatisfy({ DatabaseKey.isValid($0) }) else {
      throw .invalidPath
    }
    path = DatabasePath(keys)
  }

  /// Parses a path as clients write it, whose last key may be `.priority`.
  init(clientText text: String) throws(DatabaseError) {
    try self.init(keys: text.split(separator: "/" as Character).map { String($0) })
  }
}
