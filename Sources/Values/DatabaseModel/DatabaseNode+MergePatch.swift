package import JSONText

/// Merge patches (RFC 7396), in which events describe changes.
extension DatabaseNode {
  /// Returns the JSON of the patch that turns this node into another; `null` removes it.
  package func mergePatch(to other: DatabaseNode) -> [UInt8] {
    var bytes: [UInt8] = []
    appendPatch(to: other, in: &bytes)
    return bytes
  }

  private func appendPatch(to other: DatabaseNode, in bytes: inout [UInt8]) {
    guard case .children(let old) = content, case .children(let new) = other.content else {
      return other.appendJSON(.objects, to: &bytes)
    }
    bytes.append(UInt8(ascii: "{"))
    var isFirst = true
    func appendName(_ key: DatabaseKey) {
      if !isFirst { bytes.append(UInt8(ascii: ",")) }
      isFirst = false
      bytes.appendJSONQuoted(key.text)
      bytes.append(UInt8(ascii: ":"))
    }
    for child in old where new[child.key] == nil {
      appendName(child.key)
      bytes += "null".utf8
    }
    for child in new {
      let before = old[child.key] ?? .empty
      guard before != child.node else { continue }
      appendName(child.key)
      before.appendPatch(to: child.node, in: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  /// Returns the node that a patch makes of this one.
  ///
  /// Throws for keys, strings and depths beyond the limits.
  package func applying(_ patch: JSONTree) throws(DatabaseDataError) -> DatabaseNode {
    guard case .object(let members) = patch, case .children(let children) = content else {
      return try DatabaseInput(patch).node
    }
    var merged = children.map { ($0.key.text, $0.node) }
    for (key, member) in members {
      merged.append((key, try self[key].applying(member)))
    }
    return DatabaseNode(DatabaseChildren(merged))
  }
}
