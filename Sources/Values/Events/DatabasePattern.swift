package import StatusCodes

/// The nodes of the Realtime Database that a function watches: a pattern of instances and of paths.
package struct DatabasePattern: Sendable, Hashable {
  /// The text of the instance's name before and after its `*`; one part for an exact name.
  private var instance: [String]
  package var ref: PathPattern

  /// Parses the patterns; throws `INVALID_ARGUMENT` with a message that says what to change.
  ///
  /// `instance` is a name, `*`, or a name with one `*` for any text. `ref` is a path such as
  /// `presence/{uid}`.
  package init(instance: String, ref: String) throws(StatusError) {
    let parts = instance.split(separator: "*" as Character, omittingEmptySubsequences: false)
    guard !instance.isEmpty, parts.count <= 2, parts.joined().utf8.allSatisfy(Self.isInName) else {
      throw .invalidArgument(
        "The instance pattern \"\(instance)\" is malformed; write a name, * or one such as my-app-*."
      )
    }
    self.instance = parts.map { String($0) }
    self.ref = try PathPattern(ref, ofDocuments: false)
  }

  /// Reads the patterns of a trigger's filters, where every instance is the default.
  package init(filters: [String: String]) throws(StatusError) {
    try self.init(instance: filters["instance"] ?? Self.anyInstance, ref: filters["ref"] ?? "")
  }

  /// The instance pattern that every instance matches.
  package static let anyInstance = "*"

  /// Returns true if instances of this name are watched.
  package func matches(instance name: String) -> Bool {
    guard instance.count == 2 else { return instance == [name] }
    return name.utf8.count >= instance[0].utf8.count + instance[1].utf8.count
      && name.hasPrefix(instance[0]) && name.hasSuffix(instance[1])
  }

  private static func isInName(_ byte: UInt8) -> Bool {
    (97...122).contains(byte) || (65...90).contains(byte) || (48...57).contains(byte)
      || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
  }
}

/// The patterns of all functions on the Realtime Database, for the engine that records changes.
package struct DatabaseTriggerPatterns: Sendable {
  private let patterns: Set<DatabasePattern>

  package init(_ patterns: some Sequence<DatabasePattern>) {
    self.patterns = Set(patterns)
  }

  /// Returns the depth of the node at which a write must be recorded; nil if no function wants it.
  ///
  /// It is the least depth at which a function watches a node at or above the written path, or the
  /// depth of the path itself if a function may watch a node below it. A function whose pattern has
  /// a `**` watches the deepest node that matches.
  package func captureDepth(of path: [String], instance: String) -> Int? {
    patterns.lazy.filter { $0.matches(instance: instance) }.compactMap { pattern in
      pattern.ref.depth(atOrAbove: path) ?? (pattern.ref.canMatch(below: path) ? path.count : nil)
    }.min()
  }
}
