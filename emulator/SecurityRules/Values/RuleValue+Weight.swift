import DocumentModel

extension RuleValue {
  /// Returns the number of values and bytes of text in this value, counted up to a bound.
  ///
  /// A value that occurs at two places counts twice, because it is compared twice.
  func weight(atMost bound: Int) -> Int {
    var weight = 0
    add(to: &weight, bound)
    return weight
  }

  /// Returns the work of reading a method's receiver and arguments.
  func work(ofCalling method: String, _ arguments: [RuleValue], atMost bound: Int) -> Int {
    switch (method, self) {
    // The UTF-16 length is counted, many bytes at a time.
    case ("size", .string(let text)): return 1 + text.utf8.count / 32
    case ("size", _), ("get", _): return 1
    default: break
    }
    return arguments.reduce(weight(atMost: bound)) { $0 + $1.weight(atMost: bound) }
  }

  /// The work of the bracket operators on this value, before an element or a part is taken.
  var workOfIndexing: Int {
    // Indices in a string are counted in UTF-16.
    if case .string(let text) = self { 1 + text.utf8.count / 16 } else { 1 }
  }

  /// Returns the work of creating this value from the map that contains it.
  func work(ofTakingFrom map: RuleValue) -> Int {
    // A list in a document is converted to a list of rule values.
    if case .map(.fields) = map, case .list(let elements) = self { elements.count } else { 0 }
  }

  /// Returns the work of reading an operator's operands.
  func work(of operation: BinaryOperator, _ other: RuleValue, atMost bound: Int) -> Int {
    switch (operation, self, other) {
    case (.isIn, _, .list), (.isIn, _, .set): other.weight(atMost: bound)
    case (_, .string, .string), (_, .bytes, .bytes), (_, .list, .list), (_, .set, .set),
      (_, .map, .map), (_, .vector, .vector):
      other.weight(atMost: weight(atMost: bound))
    default: 1
    }
  }

  private func add(to weight: inout Int, _ bound: Int) {
    weight += 1
    guard weight <= bound else { return }
    switch self {
    case .null, .bool, .int, .float, .timestamp, .duration, .latlng, .queried: break
    case .string(let text): weight += text.utf8.count
    case .bytes(let bytes): weight += bytes.count
    case .vector(let numbers): weight += numbers.count
    case .path(let path): weight += path.segments.reduce(0) { $0 + 1 + $1.utf8.count }
    case .list(let elements):
      for element in elements where weight <= bound { element.add(to: &weight, bound) }
    case .set(let set):
      for element in set.elements where weight <= bound { element.add(to: &weight, bound) }
    case .map(.fields(let fields)):
      for field in fields where weight <= bound { field.value.add(to: &weight, bound) }
    case .map(let map):
      for key in map.keys where weight <= bound {
        weight += key.utf8.count
        map[key]?.add(to: &weight, bound)
      }
    case .mapDiff(let diff):
      weight += diff.added.count + diff.removed.count + diff.changed.count + diff.unchanged.count
    }
  }
}

extension FirestoreValue {
  fileprivate func add(to weight: inout Int, _ bound: Int) {
    weight += 1
    guard weight <= bound else { return }
    switch self {
    case .array(let elements):
      for element in elements where weight <= bound { element.add(to: &weight, bound) }
    case .map(let fields):
      for field in fields where weight <= bound { field.value.add(to: &weight, bound) }
    case .string(let text): weight += text.utf8.count
    case .bytes(let bytes): weight += bytes.count
    default: break
    }
  }
}
