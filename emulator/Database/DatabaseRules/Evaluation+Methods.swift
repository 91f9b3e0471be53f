import DatabaseModel

extension Evaluation {
  // MARK: - Snapshots

  mutating func call(
    _ method: Expression.SnapshotMethod,
    _ object: Expression,
    _ arguments: [Expression],
    in expression: Expression
  ) throws(EvaluationError) -> RuleValue {
    guard case .snapshot(let snapshot) = try value(object) else {
      throw EvaluationError(message: "Expected a snapshot.", range: object.range)
    }
    switch method {
    case .child: return .snapshot(snapshot.child(try text(arguments[0])))
    case .hasChild:
      let child = snapshot.child(try text(arguments[0]))
      return .boolean(try exists(child, in: expression))
    case .hasChildren where !arguments.isEmpty:
      // Every name is evaluated, so that one that is no string is an error wherever it stands.
      var hasAll = true
      for argument in arguments {
        let child = snapshot.child(try text(argument))
        if hasAll { hasAll = try exists(child, in: expression) }
      }
      return .boolean(hasAll)
    case .parent:
      guard let path = snapshot.path else { return .snapshot(snapshot) }
      guard !path.isRoot else {
        throw EvaluationError(message: "The root has no parent.", range: expression.range)
      }
      return .snapshot(RuleSnapshot(isNew: snapshot.isNew, path: path.parent))
    case .exists: return .boolean(try exists(snapshot, in: expression))
    case .hasChildren:
      return try look(at: snapshot, in: expression, .boolean(false)) { view, path in
        var hasChild = false
        try view.forEachChild(at: path) { _ in
          hasChild = true
          return false
        }
        return .boolean(hasChild)
      }
    case .getPriority:
      return try look(at: snapshot, in: expression, .null) { RuleValue(try $0.priority(at: $1)) }
    case .val:
      return try look(at: snapshot, in: expression, .null) { view, path in
        if let leaf = try view.leaf(at: path) { return RuleValue(leaf) }
        return try view.exists(at: path) ? .subtree : .null
      }
    case .isNumber, .isString, .isBoolean:
      let leaf = try look(at: snapshot, in: expression, nil) { try $0.leaf(at: $1) }
      return switch leaf {
      case .number: .boolean(method == .isNumber)
      case .string: .boolean(method == .isString)
      case .boolean: .boolean(method == .isBoolean)
      case nil: .boolean(false)
      }
    }
  }

  private mutating func exists(
    _ snapshot: RuleSnapshot,
    in expression: Expression
  ) throws(EvaluationError) -> Bool {
    try look(at: snapshot, in: expression, false) { try $0.exists(at: $1) }
  }

  /// Returns what `body` finds at a snapshot; `absent` if no node can have its path.
  private mutating func look<Result>(
    at snapshot: RuleSnapshot,
    in expression: Expression,
    _ absent: Result,
    _ body: (any DatabaseView, DatabasePath) throws -> Result
  ) throws(EvaluationError) -> Result {
    try spend(DatabaseRulesLimits.lookWork, for: expression)
    let view = snapshot.isNew ? request.newData : request.data
    guard let view, let path = snapshot.path else { return absent }
    do { return try body(view, path) } catch {
      throw EvaluationError(message: "The data cannot be read: \(error)", range: expression.range)
    }
  }

  // MARK: - Strings

  mutating func call(
    _ method: Expression.TextMethod,
    _ object: Expression,
    _ arguments: [Expression],
    in expression: Expression
  ) throws(EvaluationError) -> RuleValue {
    let text = try text(object)
    var parts: [String] = []
    for argument in arguments { parts.append(try self.text(argument)) }
    try spend(parts.reduce(text.utf8.count) { $0 + $1.utf8.count }, for: expression)
    switch method {
    case .contains: return .boolean(TextSearch(parts[0]).firstMatch(in: text) != nil)
    case .beginsWith: return .boolean(text.utf8.starts(with: parts[0].utf8))
    case .endsWith: return .boolean(text.utf8.reversed().starts(with: parts[0].utf8.reversed()))
    case .toLowerCase: return .string(text.lowercased())
    case .toUpperCase: return .string(text.uppercased())
    case .replace:
      let replaced = TextSearch(parts[0]).replacing(
        in: text,
        with: parts[1],
        bytesMax: DatabaseRulesLimits.textBytesMax
      )
      guard let replaced else {
        throw EvaluationError(message: "The string has become too long.", range: expression.range)
      }
      try checkSize(of: replaced, in: expression)
      return .string(replaced)
    case .matches:
      throw EvaluationError(message: "Expected a regular expression.", range: expression.range)
    }
  }
}

extension RuleSnapshot {
  /// Returns the node at a path below; a path that no node can have leads nowhere.
  func child(_ text: String) -> RuleSnapshot {
    guard let path, let below = DatabasePath(parsing: text), !below.isRoot else {
      return RuleSnapshot(isNew: isNew, path: nil)
    }
    return RuleSnapshot(isNew: isNew, path: path.appending(below))
  }
}
