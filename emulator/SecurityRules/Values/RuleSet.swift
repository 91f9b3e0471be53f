import DocumentModel

/// A set of values in insertion order.
package struct RuleSet: Sendable {
  private(set) var elements: [RuleValue] = []
  /// The indices of elements by equality hash; nil while there are few elements.
  private var places: [Int: [Int]]?
  /// The number of elements up to which comparing all of them is faster than hashing.
  private static let fewMax = 8

  /// True if `1` and `1.0` are one element, as in the sets of rules but not in their lists.
  private let unifiesNumbers: Bool

  init(_ elements: some Sequence<RuleValue>, unifyingNumbers: Bool = true) {
    unifiesNumbers = unifyingNumbers
    for element in elements { insert(element) }
  }

  private mutating func insert(_ element: RuleValue) {
    guard places != nil else {
      guard !contains(element) else { return }
      elements.append(element)
      if elements.count > Self.fewMax { indexElements() }
      return
    }
    // A value that does not even equal itself is added each time and never found.
    guard let key = element.equalityHash else { return elements.append(element) }
    guard !contains(element, places?[key]) else { return }
    places?[key, default: []].append(elements.count)
    elements.append(element)
  }

  private mutating func indexElements() {
    var places: [Int: [Int]] = [:]
    for (place, element) in elements.enumerated() {
      if let key = element.equalityHash { places[key, default: []].append(place) }
    }
    self.places = places
  }

  func contains(_ element: RuleValue) -> Bool {
    guard let places else { return elements.contains { areEqual($0, element) } }
    return element.equalityHash.map { contains(element, places[$0]) } ?? false
  }

  private func contains(_ element: RuleValue, _ places: [Int]?) -> Bool {
    places?.contains { areEqual(elements[$0], element) } ?? false
  }

  private func areEqual(_ left: RuleValue, _ right: RuleValue) -> Bool {
    unifiesNumbers ? left.equals(right) : left.isSame(as: right)
  }

  var count: Int { elements.count }
}

extension RuleValue {
  /// A hash that equal values share; nil for a value that equals nothing.
  fileprivate var equalityHash: Int? {
    var hasher = Hasher()
    return combine(into: &hasher) ? hasher.finalize() : nil
  }

  /// Adds the value to a hash; false if no value equals it.
  private func combine(into hasher: inout Hasher) -> Bool {
    switch self {
    case .null: hasher.combine(0)
    case .bool(let value): hasher.combine(value)
    // An integer and a float may be equal.
    case .int(let number): hasher.combine(Double(number))
    case .float(let number):
      guard !number.isNaN else { return false }
      hasher.combine(number)
    case .string(let text): hasher.combine(ExactText(text))
    case .bytes(let bytes): hasher.combine(bytes)
    case .timestamp(let time): hasher.combine(time)
    case .duration(let span): hasher.combine(span)
    case .latlng(let point):
      guard !point.latitude.isNaN, !point.longitude.isNaN else { return false }
      hasher.combine(point)
    case .vector(let numbers):
      guard !numbers.contains(where: \.isNaN) else { return false }
      hasher.combine(numbers)
    case .path(let path): hasher.combine(path)
    case .list(let elements):
      hasher.combine(elements.count)
      return elements.allSatisfy { $0.combine(into: &hasher) }
    case .map(let map):
      hasher.combine(map.count)
      return map.keys.allSatisfy { key in
        hasher.combine(ExactText(key))
        return map[key]?.combine(into: &hasher) ?? false
      }
    // The order of elements does not matter.
    case .set(let set): hasher.combine(set.count)
    case .mapDiff, .queried: return false
    }
    return true
  }
}
