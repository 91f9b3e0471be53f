/// The outcome of a comparison.
package enum Ordering: Int, Sendable, Hashable {
  case less = -1
  case equal = 0
  case greater = 1

  /// The result of comparing the same operands in reverse order.
  package var reversed: Ordering {
    switch self {
    case .less: .greater
    case .equal: .equal
    case .greater: .less
    }
  }
}

/// The total order of Firestore values across all types.
///
/// null < boolean < number < timestamp < string < bytes < reference < geo point < array < vector <
/// map. Numbers compare by exact value across integer and double; NaN is lowest and `-0.0` equals
/// `0`. Strings compare by UTF-8 bytes. See "Value type ordering" in Firestore's documentation.
package enum ValueOrder {
  /// Compares two values of any type.
  package static func compare(_ left: FirestoreValue, _ right: FirestoreValue) -> Ordering {
    let leftClass = typeClass(left)
    let rightClass = typeClass(right)
    guard leftClass == rightClass else { return compare(leftClass.rawValue, rightClass.rawValue) }
    switch (left, right) {
    case (.boolean(let a), .boolean(let b)): return compare(a ? 1 : 0, b ? 1 : 0)
    case (.integer(let a), .integer(let b)): return compare(a, b)
    case (.integer(let a), .double(let b)): return compareNumbers(a, b)
    case (.double(let a), .integer(let b)): return compareNumbers(b, a).reversed
    case (.double(let a), .double(let b)): return compareDoubles(a, b)
    case (.timestamp(let a), .timestamp(let b)): return compare(a.microseconds, b.microseconds)
    case (.string(let a), .string(let b)): return compareText(a, b)
    case (.bytes(let a), .bytes(let b)): return compareBytes(a, b)
    case (.reference(let a), .reference(let b)):
      // Compares by order rather than equality; ids that compare as equal are always identical, see
      // `numericID`.
      return a < b ? .less : b < a ? .greater : .equal
    case (.geoPoint(let a), .geoPoint(let b)):
      let latitude = compareDoubles(a.latitude, b.latitude)
      return latitude != .equal ? latitude : compareDoubles(a.longitude, b.longitude)
    case (.array(let a), .array(let b)):
      for (x, y) in zip(a, b) {
        let order = compare(x, y)
        if order != .equal { return order }
      }
      return compare(a.count, b.count)
    case (.vector(let a), .vector(let b)):
      guard a.count == b.count else { return compare(a.count, b.count) }
      for (x, y) in zip(a, b) {
        let order = compareDoubles(x, y)
        if order != .equal { return order }
      }
      return .equal
    case (.map(let a), .map(let b)): return compareMaps(a, b)
    default: return .equal
    }
  }

  /// Returns true if a query's `==` or an array transform treats two values as the same.
  ///
  /// `3` equals `3.0` and `0` equals `-0.0`, at any depth.
  package static func areEqual(_ left: FirestoreValue, _ right: FirestoreValue) -> Bool {
    compare(left, right) == .equal
  }

  /// A group of types that are ordered together.
  ///
  /// A range in a query stays within its operand's class.
  package enum TypeClass: Int, Sendable {
    case null, boolean, number, timestamp, string, bytes, reference, geoPoint, array, vector, map
  }

  /// Returns the type class of a value.
  package static func typeClass(_ value: FirestoreValue) -> TypeClass {
    switch value {
    case .null: .null
    case .boolean: .boolean
    case .integer, .double: .number
    case .timestamp: .timestamp
    case .string: .string
    case .bytes: .bytes
    case .reference: .reference
    case .geoPoint: .geoPoint
    case .array: .array
    case .vector: .vector
    case .map: .map
    }
  }

  /// Compares collection or document ids; `__id<number>__` sorts first, by number.
  package static func compareIDs(_ left: String, _ right: String) -> Ordering {
    switch (numericID(left), numericID(right)) {
    case (let a?, let b?): compare(a, b)
    case (.some, nil): .less
    case (nil, .some): .greater
    case (nil, nil): compareText(left, right)
    }
  }

  /// Returns the number in an id of the form `__id<int64>__`; nil for any other id.
  package static func numericID(_ id: String) -> Int64? {
    guard id.utf8.count > 6, id.hasPrefix("__id"), id.hasSuffix("__") else { return nil }
    let digits = id.dropFirst(4).dropLast(2)
    guard let number = Int64(digits), String(number) == digits else { return nil }
    return number
  }

  /// Compares text by its UTF-8 bytes.
  package static func compareText(_ left: String, _ right: String) -> Ordering {
    let fast = left.utf8.withContiguousStorageIfAvailable { left in
      right.utf8.withContiguousStorageIfAvailable { compareBytes(left, $0) }
    }
    return (fast ?? nil) ?? compareBytes(left.utf8, right.utf8)
  }

  /// Compares unsigned bytes; a prefix sorts before any longer sequence.
  package static func compareBytes(
    _ left: some Sequence<UInt8>,
    _ right: some Sequence<UInt8>
  ) -> Ordering {
    var rightIterator = right.makeIterator()
    for a in left {
      guard let b = rightIterator.next() else { return .greater }
      if a != b { return a < b ? .less : .greater }
    }
    return rightIterator.next() == nil ? .equal : .less
  }

  private static func compare<T: Comparable>(_ left: T, _ right: T) -> Ordering {
    left < right ? .less : left == right ? .equal : .greater
  }

  private static func compareDoubles(_ left: Double, _ right: Double) -> Ordering {
    if left.isNaN || right.isNaN {
      return left.isNaN && right.isNaN ? .equal : left.isNaN ? .less : .greater
    }
    return compare(left, right)
  }

  private static func compareNumbers(_ integer: Int64, _ double: Double) -> Ordering {
    if double.isNaN { return .greater }
    if double >= 0x1p63 { return .less }
    if double < -0x1p63 { return .greater }
    let truncated = double.rounded(.towardZero)
    let order = compare(integer, Int64(truncated))
    return order != .equal ? order : compare(truncated, double)
  }

  private static func compareMaps(_ left: MapValue, _ right: MapValue) -> Ordering {
    for (a, b) in zip(left, right) {
      let keys = compareText(a.key, b.key)
      if keys != .equal { return keys }
      let values = compare(a.value, b.value)
      if values != .equal { return values }
    }
    return compare(left.count, right.count)
  }
}
