import DatabaseModel
import DocumentModel
import Events

/// The nodes that a change in the Realtime Database contains.
extension DatabaseChange {
  /// A change whose nodes are parsed.
  struct Parsed {
    var path: [String]
    var before: DatabaseNode
    var after: DatabaseNode

    /// Returns the changed nodes that a pattern matches at or below the path, at most `limit`.
    ///
    /// A node that matches hides those below it, which matters for patterns with a `**` only.
    func nodes(matching pattern: PathPattern, limit: Int) -> [[String]] {
      var found: [[String]] = []
      collect(pattern, limit, &found)
      return found
    }

    private func collect(_ pattern: PathPattern, _ limit: Int, _ found: inout [[String]]) {
      guard found.count < limit, before != after else { return }
      if pattern.match(ResourcePath(path)) != nil { return found.append(path) }
      guard pattern.canMatch(below: path) else { return }
      var keys = before.children.map(\.key)
      keys += after.children.lazy.map(\.key).filter { before.children[$0] == nil }
      for key in keys.sorted() { child(key.text).collect(pattern, limit, &found) }
    }

    func child(_ key: String) -> Parsed {
      Parsed(path: path + [key], before: before[key], after: after[key])
    }
  }

  /// Parses the nodes; throws `CorruptDataError`.
  func parsed() throws(CorruptDataError) -> Parsed {
    do throws(DatabaseDataError) {
      return Parsed(
        path: path,
        before: try DatabaseInput(parsing: before).node,
        after: try DatabaseInput(parsing: after).node
      )
    } catch {
      throw CorruptDataError("a change of the Realtime Database: \(error.message)")
    }
  }

  /// Returns the change of a node at or below this one's.
  func narrowed(to path: [String]) throws(CorruptDataError) -> DatabaseChange {
    guard path != self.path else { return self }
    return narrowed(to: path, try parsed())
  }

  func narrowed(to path: [String], _ parsed: Parsed) -> DatabaseChange {
    guard path != self.path else { return self }
    let node = path.dropFirst(self.path.count).reduce(parsed) { $0.child($1) }
    return DatabaseChange(
      instance: instance,
      path: path,
      before: node.before.json(.objects),
      after: node.after.json(.objects)
    )
  }

  /// The data of the CloudEvent: the node before the change, and a merge patch to the one after it.
  func eventData() throws(CorruptDataError) -> [UInt8] {
    let parsed = try parsed()
    var bytes = Array(
      #"{"@type":"type.googleapis.com/google.events.firebase.database.v1.ReferenceEventData","#.utf8
    )
    bytes += #""data":"#.utf8 + before
    bytes += #","delta":"#.utf8 + parsed.before.mergePatch(to: parsed.after)
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }
}
