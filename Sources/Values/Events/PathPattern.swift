package import DocumentModel
package import StatusCodes

/// A pattern over document paths, such as `chats/{chatId}/messages/{messageId}`.
///
/// `{name}` and `{name=*}` capture one segment; `{name=**}` captures any number of segments,
/// including none. A bare `*` or `**` matches the same segments without capturing them. At most one
/// segment is a `**`. Slashes at either end are ignored. The syntax is that of Eventarc's path
/// patterns.
package struct PathPattern: Sendable, Hashable {
  fileprivate var segments: [Segment]

  fileprivate enum Segment: Sendable, Hashable {
    case literal(String)
    case one(capture: String?)
    case many(capture: String?)
  }

  /// Parses a pattern; throws `INVALID_ARGUMENT` with a message that says what to change.
  ///
  /// Empty segments, malformed captures, duplicate capture names and a second `**` are refused. A
  /// document pattern is also refused if it names a collection, because it could not match any
  /// document.
  package init(_ text: String, ofDocuments: Bool = true) throws(StatusError) {
    func refuse(_ reason: String) -> StatusError {
      .invalidArgument("The \(ofDocuments ? "document " : "")pattern \"\(text)\" \(reason).")
    }
    var trimmed = text[...]
    while trimmed.hasPrefix("/") { trimmed.removeFirst() }
    while trimmed.hasSuffix("/") { trimmed.removeLast() }
    guard !trimmed.isEmpty else { throw refuse("is empty; write one such as chats/{chatId}") }
    segments = []
    for part in trimmed.split(separator: "/", omittingEmptySubsequences: false) {
      guard let segment = Self.segment(part) else {
        throw refuse("has the malformed segment \"\(part)\"; a capture is {name} or {name=**}")
      }
      segments.append(segment)
    }
    let names = captureNames
    guard Set(names).count == names.count else {
      throw refuse("captures one name twice; give each capture its own")
    }
    let manyCount = segments.count(where: \.isMany)
    guard manyCount <= 1 else { throw refuse("has more than one **; keep one") }
    guard !ofDocuments || manyCount == 1 || segments.count.isMultiple(of: 2) else {
      throw refuse(
        "names a collection; add a segment for the document, such as \(trimmed)/{id}"
      )
    }
  }

  /// The names of the captures, in order.
  package var captureNames: [String] {
    segments.compactMap { segment in
      switch segment {
      case .literal: nil
      case .one(let capture), .many(let capture): capture
      }
    }
  }

  /// True if the pattern has a wildcard; otherwise it names exactly one document.
  package var hasWildcards: Bool {
    segments.contains { if case .literal = $0 { false } else { true } }
  }

  /// The id of the collection that holds every matching document; nil if it varies.
  package var collectionID: String? {
    guard segments.count >= 2, segments.last?.isMany == false,
      case .literal(let id) = segments[segments.count - 2]
    else { return nil }
    return id
  }

  /// Returns the captured segments by name; nil if the path does not match.
  ///
  /// A `**` capture joins its segments with slashes.
  package func match(_ path: ResourcePath) -> [String: String]? {
    let ids = path.segments
    let manyIndex = segments.firstIndex(where: \.isMany) ?? segments.count
    let tailCount = max(0, segments.count - manyIndex - 1)
    let hasMany = manyIndex < segments.count
    guard hasMany ? ids.count >= manyIndex + tailCount : ids.count == segments.count else {
      return nil
    }
    var captures: [String: String] = [:]
    func matchesOne(_ segment: Segment, _ id: String) -> Bool {
      switch segment {
      case .literal(let literal): return literal.utf8.elementsEqual(id.utf8)
      case .one(let capture), .many(let capture):
        if let capture { captures[capture] = id }
        return true
      }
    }
    for index in 0..<min(manyIndex, ids.count) where !matchesOne(segments[index], ids[index]) {
      return nil
    }
    guard hasMany else { return captures }
    for offset in 0..<tailCount
    where !matchesOne(segments[manyIndex + 1 + offset], ids[ids.count - tailCount + offset]) {
      return nil
    }
    if case .many(let capture?) = segments[manyIndex] {
      captures[capture] = ids[manyIndex..<ids.count - tailCount].joined(separator: "/")
    }
    return captures
  }

  /// Returns the depth of the deepest path at or above another one that matches; nil if none does.
  package func depth(atOrAbove keys: [String]) -> Int? {
    let hasMany = segments.contains(where: \.isMany)
    let depths = hasMany ? Array((0...keys.count).reversed()) : [segments.count]
    return depths.first { depth in
      depth <= keys.count && match(ResourcePath(Array(keys.prefix(depth)))) != nil
    }
  }

  /// Returns true if the pattern may match paths below another one.
  package func canMatch(below keys: [String]) -> Bool {
    let head = segments.prefix { !$0.isMany }
    guard head.count < segments.count || keys.count < segments.count else { return false }
    return zip(head, keys).allSatisfy { segment, key in
      if case .literal(let literal) = segment { literal.utf8.elementsEqual(key.utf8) } else { true }
    }
  }

  private static func segment(_ text: Substring) -> Segment? {
    switch text {
    case "": return nil
    case "*": return .one(capture: nil)
    case "**": return .many(capture: nil)
    default: break
    }
    guard text.contains(where: { "{}*".contains($0) }) else { return .literal(String(text)) }
    guard text.hasPrefix("{"), text.hasSuffix("}") else { return nil }
    let parts = text.dropFirst().dropLast().split(
      separator: "=",
      maxSplits: 1,
      omittingEmptySubsequences: false
    )
    guard let name = parts.first, isName(name) else { return nil }
    switch parts.count == 1 ? "*" : parts[1] {
    case "*": return .one(capture: String(name))
    case "**": return .many(capture: String(name))
    default: return nil
    }
  }

  private static func isName(_ text: Substring) -> Bool {
    guard let first = text.utf8.first, !(48...57).contains(first) else { return false }
    return text.utf8.allSatisfy { byte in
      (65...90).contains(byte) || (97...122).contains(byte) || (48...57).contains(byte)
        || byte == 95
    }
  }
}

extension PathPattern.Segment {
  fileprivate var isMany: Bool { if case .many = self { true } else { false } }
}
