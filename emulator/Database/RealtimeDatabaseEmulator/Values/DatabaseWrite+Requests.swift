import DatabaseModel
import DatabaseTree
import JSONText

extension DatabaseWrite {
  /// Creates the write of a value at one place.
  init(_ value: JSONTree, at location: DatabaseLocation) throws(DatabaseDataError) {
    self.init(
      location.isPriority
        ? .setPriority(location.path, try DatabaseInput(priority: value))
        : .set(location.path, try DatabaseInput(value))
    )
  }

  /// Creates the write of several values, whose names are paths below `path`.
  init(
    merging members: [(String, JSONTree)],
    below path: DatabasePath
  ) throws(DatabaseDataError) {
    var writes: [Member] = []
    for (name, value) in members {
      // Production answers the place of the name, whatever is wrong with it.
      guard let place = try? DatabaseLocation(clientText: name),
        place.isPriority || !place.path.isRoot
      else { throw .invalidKey(name) }
      let input = place.isPriority ? try DatabaseInput(priority: value) : try DatabaseInput(value)
      writes.append(Member(path: place.path, isPriority: place.isPriority, value: input))
    }
    self.init(.merge(path, writes))
  }
}
