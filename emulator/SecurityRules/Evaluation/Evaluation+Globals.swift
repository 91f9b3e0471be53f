import DocumentModel

/// The global functions, such as `get` and `exists`, and the documents that they read.
extension Evaluation {
  func global(
    _ function: GlobalFunction,
    _ argument: Expression,
    _ frame: Frame,
    _ expression: Expression
  ) throws(RuleError) -> RuleValue {
    let value = try known(argument, frame)
    switch function {
    case .get, .getAfter:
      if let found = try document(value, after: function == .getAfter, function, expression) {
        return found
      }
      // A document that the request deletes is null after it.
      guard function == .getAfter, request.method != .get, request.method != .list else {
        throw serviceCallError(function, value, "There is no such document.", expression)
      }
      return .null
    case .exists: return .bool(try document(value, after: false, function, expression) != nil)
    case .existsAfter: return .bool(try document(value, after: true, function, expression) != nil)
    case .debug:
      if keepsDebugged, debugged.count < Decision.debuggedMax {
        debugged.append(
          Decision.DebugValue(
            range: expression.range,
            text: ruleset.source.text(argument.range),
            value: value.literal
          )
        )
      }
      return value
    case .int, .float, .string, .path:
      do { return try RuleConversions.convert(value, to: function) } catch {
        throw failure(error.message, expression)
      }
    }
  }

  private func document(
    _ path: RuleValue,
    after: Bool,
    _ function: GlobalFunction,
    _ expression: Expression
  ) throws(RuleError) -> RuleValue? {
    guard case .path(let path) = path else {
      throw failure(
        "Unsupported operation error. Received: \(function.rawValue)(\(path.typeName)). "
          + "Expected: \(function.rawValue)(path).",
        expression
      )
    }
    let target: LookUpPath
    do { target = try LookUpPath(path, database: database) } catch {
      throw serviceCallError(function, .path(path), error.message, expression)
    }
    guard case .document(let name) = target else { return nil }
    let place = ledger.place(of: name)
    // Accessing the requested document is free.
    if !accesses.contains(place), !isAskedFor(name) {
      // A refused access is not counted, so accesses that were already made stay allowed.
      guard accesses.count < RulesLimits.accessesMax, ledger.count(at: place) else {
        throw serviceCallError(
          function,
          .path(path),
          "The rules may look at \(RulesLimits.accessesMax) documents for one, and at "
            + "\(ledger.totalMax) for a request.",
          expression
        )
      }
      accesses.append(place)
    }
    if let value = ledger.value(at: place, after: after) { return value.isNull ? nil : value }
    let value: RuleValue?
    do { value = try documents.document(name, after: after) } catch {
      throw serviceCallError(function, .path(path), "\(error)", expression)
    }
    ledger.setValue(value ?? .null, at: place, after: after)
    return value
  }

  /// The database of the request; the default database for a file in Storage.
  private var database: String {
    guard request.path.count > 1, request.path[0].text == "databases" else { return "(default)" }
    return request.path[1].text ?? "(default)"
  }

  private func isAskedFor(_ path: RulePath) -> Bool {
    let segments = path.segments
    guard segments.count == request.path.count else { return false }
    // Comparing from the end is faster, because all paths of one database begin alike.
    for place in segments.indices.reversed() {
      guard let text = request.path[place].text, text.isIdentical(to: segments[place]) else {
        return false
      }
    }
    return true
  }

  private func serviceCallError(
    _ function: GlobalFunction,
    _ path: RuleValue,
    _ reason: String,
    _ expression: Expression
  ) -> RuleError {
    failure(
      "Service call error. Function: [\(function.rawValue)], Argument: [\(path.literal)]. "
        + reason,
      expression
    )
  }
}
