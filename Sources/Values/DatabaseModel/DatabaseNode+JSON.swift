import JSONText

extension DatabaseNode {
  /// The form of a node in JSON.
  package enum JSONForm: Sendable {
    /// Without priorities; objects whose keys are mostly consecutive integers are lists.
    case plain
    /// With `.priority` and `.value`, and without lists, as exports and the WebSocket have it.
    case export
    /// Without priorities and without lists, as events have it.
    case objects
  }

  /// Returns the JSON of the node, on one line; `null` for an empty one.
  package func json(_ form: JSONForm) -> [UInt8] {
    var bytes: [UInt8] = []
    appendJSON(form, to: &bytes)
    return bytes
  }

  package func appendJSON(_ form: JSONForm, to bytes: inout [UInt8]) {
    let priority = form == .export ? priority : nil
    switch content {
    case .empty: bytes += "null".utf8
    case .leaf(let leaf):
      guard let priority else { return leaf.appendJSON(to: &bytes) }
      bytes += #"{".priority":"#.utf8
      priority.appendJSON(to: &bytes)
      bytes += #",".value":"#.utf8
      leaf.appendJSON(to: &bytes)
      bytes.append(UInt8(ascii: "}"))
    case .children(let children):
      if form == .plain, let count = Self.listCount(children) {
        return appendList(children, count: count, to: &bytes)
      }
      bytes.append(UInt8(ascii: "{"))
      if let priority {
        bytes += #"".priority":"#.utf8
        priority.appendJSON(to: &bytes)
      }
      for (index, child) in children.enumerated() {
        if index > 0 || priority != nil { bytes.append(UInt8(ascii: ",")) }
        bytes.appendJSONQuoted(child.key.text)
        bytes.append(UInt8(ascii: ":"))
        child.node.appendJSON(form, to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  private func appendList(_ children: DatabaseChildren, count: Int, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "["))
    var next = 0
    for child in children {
      while next < Int(child.key.integer ?? 0) {
        bytes += next == 0 ? "null".utf8 : ",null".utf8
        next += 1
      }
      if next > 0 { bytes.append(UInt8(ascii: ",")) }
      child.node.appendJSON(.plain, to: &bytes)
      next += 1
    }
    bytes.append(UInt8(ascii: "]"))
  }

  /// Returns the length of the list that readers make of the children; nil if they make an object.
  ///
  /// A list needs plain integers as keys, of which more than half are there.
  private static func listCount(_ children: DatabaseChildren) -> Int? {
    guard let last = children.last?.key.integer, last >= 0, Int(last) < 2 * children.count else {
      return nil
    }
    let isPlain = children.allSatisfy { child in
      guard let integer = child.key.integer, integer >= 0 else { return false }
      return String(integer) == child.key.text
    }
    return isPlain ? Int(last) + 1 : nil
  }
}

extension DatabaseLeaf {
  package func appendJSON(to bytes: inout [UInt8]) {
    switch self {
    case .boolean(let flag): bytes += (flag ? "true" : "false").utf8
    case .number(let number): bytes += JSONValue.number(number).bytes
    case .string(let text): bytes.appendJSONQuoted(text)
    }
  }
}
