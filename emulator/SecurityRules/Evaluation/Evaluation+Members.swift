/// The members of maps and of the request.
extension Evaluation {
  func member(
    _ object: RuleValue,
    _ name: String,
    _ expression: Expression
  ) throws(RuleError) -> RuleValue {
    switch object {
    case .map(let map):
      guard let value = map[name] else { throw undefined(name, expression) }
      do { try spend(value.work(ofTakingFrom: object)) } catch {
        throw failure(error.message, expression)
      }
      return value
    case .null: throw failure("Null value error.", expression)
    case .queried(let part):
      let inner = QueriedPart(names: part.names + [name])
      guard inner.names[0] == "data" else { throw unproven(inner, expression) }
      return constraints?.equalValue(of: inner) ?? .queried(inner)
    default:
      throw failure("Type error. Received: [\(object.typeName)] Expected: [map,path].", expression)
    }
  }

  func requestMember(
    _ name: String,
    _ expression: Expression
  ) throws(RuleError) -> RuleValue {
    guard let value = requestValue(name) else { throw undefined(name, expression) }
    return value
  }

  private func requestValue(_ name: String) -> RuleValue? {
    switch name {
    case "auth": request.auth
    case "method": .string(request.method.rawValue)
    case "time": .timestamp(request.time)
    case "path": knownPath.map { .path(RulePath($0)) }
    case "resource": request.newResource
    case "query": request.query
    default: nil
    }
  }

  /// The path of the document, or of the collection that a query searches; nil if parts are open.
  private var knownPath: [String]? {
    let path = request.path.last == .unknown ? request.path.dropLast() : request.path[...]
    let known = path.compactMap(\.text)
    return known.count == path.count ? known : nil
  }

  var wholeRequest: RuleValue {
    var members = RuleMembers()
    for name in ["auth", "method", "time", "path", "resource", "query"] {
      members[name] = requestValue(name)
    }
    return .map(.members(members))
  }
}
