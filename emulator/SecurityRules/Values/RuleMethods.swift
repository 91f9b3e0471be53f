import DocumentModel
import FlowControl
import Foundation
import LinearRegex

/// The methods of values, and the bracket operators.
enum RuleMethods {
  /// Indicates whether no type has a method with this name.
  static func isUnknown(_ name: String) -> Bool { !names.contains(name) }

  private static let names: Set<String> = [
    "size", "lower", "upper", "trim", "matches", "replace", "split", "toUtf8", "toBase64",
    "toHexString", "concat", "removeAll", "join", "hasAll", "hasAny", "hasOnly", "toSet",
    "difference", "union", "intersection", "keys", "values", "get", "diff", "addedKeys",
    "removedKeys", "changedKeys", "unchangedKeys", "affectedKeys", "seconds", "nanos", "date",
    "time", "year", "month", "day", "hours", "minutes", "toMillis", "dayOfYear", "dayOfWeek",
    "latitude", "longitude", "distance", "bind",
  ]

  /// Calls a method.
  ///
  /// Work beyond a single pass over the operands is subtracted from `work`.
  static func call(
    _ name: String,
    on receiver: RuleValue,
    _ arguments: [RuleValue],
    _ patterns: BoundedCache<ExactText, LinearPattern>,
    work: inout Int
  ) throws(OperationError) -> RuleValue {
    let result: RuleValue? =
      switch receiver {
      case .string(let text): try string(name, text, arguments, patterns, work: &work)
      case .bytes(let bytes): self.bytes(name, bytes, arguments)
      case .list(let elements): try list(name, elements, arguments)
      case .set(let set): self.set(name, set, arguments)
      case .map(let map): self.map(name, map, arguments)
      case .mapDiff(let diff): mapDiff(name, diff, arguments)
      case .timestamp(let time): timestamp(name, time, arguments)
      case .duration(let span): duration(name, span, arguments)
      case .latlng(let point): latlng(name, point, arguments)
      case .path(let path): try self.path(name, path, arguments)
      case .null: throw OperationError(message: "Null value error.")
      case .bool, .int, .float, .vector, .queried: nil
      }
    guard let result else {
      throw OperationError(message: "Function not found error: Name: [\(name)].")
    }
    return result
  }

  // MARK: Brackets

  static func element(
    of value: RuleValue,
    at index: RuleValue
  ) throws(OperationError) -> RuleValue {
    switch (value, index) {
    case (.list(let elements), .int(let place)):
      guard let place = Int(exactly: place), elements.indices.contains(place) else {
        throw outOfBounds
      }
      return elements[place]
    case (.string(let text), .int(let place)):
      let units = Array(text.utf16)
      guard let place = Int(exactly: place), units.indices.contains(place) else {
        throw outOfBounds
      }
      return .string(String(decoding: [units[place]], as: UTF16.self))
    case (.path(let path), .int(let place)):
      guard let place = Int(exactly: place), path.segments.indices.contains(place) else {
        throw outOfBounds
      }
      return .string(path.segments[place])
    case (.map(let map), .string(let key)):
      guard let value = map[key] else {
        throw OperationError(message: "Property \(key) is undefined on object.")
      }
      return value
    case (.null, _): throw OperationError(message: "Null value error.")
    default: throw .unsupported("\(value.typeName)[\(index.typeName)]")
    }
  }

  private static let outOfBounds = OperationError(message: "Index out of bound error.")

  static func slice(
    _ value: RuleValue,
    _ from: RuleValue?,
    _ to: RuleValue?
  ) throws(OperationError) -> RuleValue {
    func checked(_ count: Int) throws(OperationError) -> Range<Int> {
      guard case .int(let from) = from ?? .int(0), case .int(let to) = to ?? .int(Int64(count))
      else {
        throw .unsupported("\(value.typeName)[\(from?.typeName ?? ""):\(to?.typeName ?? "")]")
      }
      // Even an empty slice must start before an element and end after one.
      guard 0 <= from, from < count, 0 < to, to <= count else { throw outOfBounds }
      guard from <= to else { throw OperationError(message: "Illegal range error.") }
      return Int(from)..<Int(to)
    }
    switch value {
    case .list(let elements): return .list(Array(elements[try checked(elements.count)]))
    case .string(let text):
      let units = Array(text.utf16)
      return .string(String(decoding: units[try checked(units.count)], as: UTF16.self))
    case .path(let path):
      guard !path.hasPlaceholders else { throw RulePath.unbound }
      return .path(RulePath(Array(path.segments[try checked(path.segments.count)])))
    case .null: throw OperationError(message: "Null value error.")
    default: throw .unsupported("\(value.typeName)[int:int]")
    }
  }

  private static func pattern(
    _ text: String,
    _ known: BoundedCache<ExactText, LinearPattern>
  ) throws(OperationError) -> LinearPattern {
    if let pattern = known[ExactText(text)] { return pattern }
    let pattern: LinearPattern
    do { pattern = try LinearPattern(text) } catch {
      throw OperationError(message: "Invalid regular expression '\(text)': \(error.message).")
    }
    known[ExactText(text)] = pattern
    return pattern
  }

  // MARK: Types

  private static func string(
    _ name: String,
    _ text: String,
    _ arguments: [RuleValue],
    _ patterns: BoundedCache<ExactText, LinearPattern>,
    work: inout Int
  ) throws(OperationError) -> RuleValue? {
    switch (name, arguments.count) {
    case ("size", 0): return .int(Int64(text.utf16.count))
    case ("lower", 0): return .string(mapped(text, "A"..."Z") { $0 + 32 })
    case ("upper", 0): return .string(mapped(text, "a"..."z") { $0 - 32 })
    case ("trim", 0): return .string(trimmed(text))
    case ("toUtf8", 0): return .bytes(Array(text.utf8))
    case ("matches", 1), ("split", 1), ("replace", 2):
      guard case .string(let expression) = arguments[0] else { return nil }
      let pattern = try self.pattern(expression, patterns)
      work -= pattern.stepCount
      do {
        switch name {
        case "matches": return .bool(try pattern.matchesWhole(text, work: &work))
        case "split": return .list(try pattern.split(text, work: &work).map(RuleValue.string))
        default:
          guard case .string(let template) = arguments[1] else { return nil }
          return .string(
            try pattern.replacingAll(
              in: text,
              with: template,
              bytesMax: textBytesMax,
              work: &work
            )
          )
        }
      } catch {
        switch error {
        case .tooMuchWork: throw .tooMuchWork
        case .tooLong: throw tooLong
        case .invalidTemplate:
          throw OperationError(message: "Invalid replacement: \(arguments[1].literal).")
        }
      }
    default: return nil
    }
  }

  /// Returns a string with the ASCII letters of a range mapped; other letters have no case here.
  private static func mapped(
    _ text: String,
    _ range: ClosedRange<Unicode.Scalar>,
    _ change: (UInt8) -> UInt8
  ) -> String {
    let bytes = text.utf8.map { range.contains(Unicode.Scalar($0)) ? change($0) : $0 }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The maximum size of results of `replace` and `join`, which could otherwise double repeatedly.
  private static let textBytesMax = 4 << 20
  private static let tooLong = OperationError(message: "The text has become too long.")

  private static func trimmed(_ text: String) -> String {
    let scalars = Array(text.unicodeScalars)
    guard let first = scalars.firstIndex(where: { $0.value > 32 }),
      let last = scalars.lastIndex(where: { $0.value > 32 })
    else { return "" }
    return String(scalars: scalars[first...last])
  }

  private static func bytes(
    _ name: String,
    _ bytes: [UInt8],
    _ arguments: [RuleValue]
  ) -> RuleValue? {
    guard arguments.isEmpty else { return nil }
    switch name {
    case "size": return .int(Int64(bytes.count))
    case "toBase64":
      let text = Data(bytes).base64EncodedString()
      return .string(text.replacing("+", with: "-").replacing("/", with: "_"))
    case "toHexString":
      let digits = Array("0123456789ABCDEF")
      return .string(
        String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
      )
    default: return nil
    }
  }

  private static func list(
    _ name: String,
    _ elements: [RuleValue],
    _ arguments: [RuleValue]
  ) throws(OperationError) -> RuleValue? {
    guard arguments.count <= 1 else { return nil }
    switch (name, arguments.first) {
    case ("size", nil): return .int(Int64(elements.count))
    case ("toSet", nil): return .set(RuleSet(elements))
    case ("concat", .list(let other)): return .list(elements + other)
    case ("removeAll", .list(let other)):
      let removed = RuleSet(other, unifyingNumbers: false)
      return .list(elements.filter { !removed.contains($0) })
    case ("join", .string(let separator)):
      let texts = elements.compactMap(RuleConversions.text)
      guard texts.count == elements.count else { return nil }
      let separators = max(0, texts.count - 1).multipliedReportingOverflow(by: separator.utf8.count)
      let bytes = texts.reduce(separators.partialValue) { $0 + $1.utf8.count }
      guard !separators.overflow, bytes <= textBytesMax else { throw tooLong }
      return .string(texts.joined(separator: separator))
    case ("hasAll", .list(let other)), ("hasAny", .list(let other)), ("hasOnly", .list(let other)):
      return compare(name, elements, other)
    default: return nil
    }
  }

  /// The maximum length of lists that are compared without sets.
  ///
  /// The field names of a document are usually such a list.
  private static let shortCountMax = 16

  private static func compare(
    _ name: String,
    _ elements: [RuleValue],
    _ given: [RuleValue]
  ) -> RuleValue {
    guard isShort(elements), isShort(given) else {
      return compare(
        name,
        RuleSet(elements, unifyingNumbers: false),
        RuleSet(given, unifyingNumbers: false)
      )
    }
    func holds(_ list: [RuleValue], _ wanted: RuleValue) -> Bool {
      list.contains { $0.isSame(as: wanted) }
    }
    return switch name {
    case "hasAll": .bool(given.allSatisfy { holds(elements, $0) })
    case "hasAny": .bool(given.contains { holds(elements, $0) })
    default: .bool(elements.allSatisfy { holds(given, $0) })
    }
  }

  /// Indicates whether pairwise comparison of a list's elements costs no more than sets of them.
  private static func isShort(_ list: [RuleValue]) -> Bool {
    list.count <= shortCountMax
      && list.allSatisfy { element in
        switch element {
        case .null, .bool, .int, .float, .string: true
        default: false
        }
      }
  }

  private static func compare(_ name: String, _ set: RuleSet, _ given: RuleSet) -> RuleValue {
    switch name {
    case "hasAll": .bool(given.elements.allSatisfy(set.contains))
    case "hasAny": .bool(given.elements.contains(where: set.contains))
    default: .bool(set.elements.allSatisfy(given.contains))
    }
  }

  private static func set(
    _ name: String,
    _ set: RuleSet,
    _ arguments: [RuleValue]
  ) -> RuleValue? {
    guard arguments.count <= 1 else { return nil }
    switch (name, arguments.first) {
    case ("size", nil): return .int(Int64(set.count))
    case ("difference", .set(let other)):
      return .set(RuleSet(set.elements.filter { !other.contains($0) }))
    case ("intersection", .set(let other)):
      return .set(RuleSet(set.elements.filter(other.contains)))
    case ("union", .set(let other)): return .set(RuleSet(set.elements + other.elements))
    case ("hasAll", .list(let other)), ("hasAny", .list(let other)), ("hasOnly", .list(let other)):
      return compare(name, set, RuleSet(other))
    case ("hasAll", .set(let other)), ("hasAny", .set(let other)), ("hasOnly", .set(let other)):
      return compare(name, set, other)
    default: return nil
    }
  }

  private static func map(
    _ name: String,
    _ map: RuleMap,
    _ arguments: [RuleValue]
  ) -> RuleValue? {
    switch (name, arguments.count) {
    case ("size", 0): return .int(Int64(map.count))
    case ("keys", 0): return .list(map.keys.map(RuleValue.string))
    case ("values", 0): return .list(map.keys.compactMap { map[$0] })
    case ("diff", 1):
      guard case .map(let other) = arguments[0] else { return nil }
      return .mapDiff(RuleMapDiff(map, from: other))
    case ("get", 2):
      switch arguments[0] {
      case .string(let key): return map[key] ?? arguments[1]
      case .list(let keys):
        var found = RuleValue.map(map)
        for key in keys {
          guard case .string(let key) = key else { return nil }
          guard case .map(let inner) = found, let next = inner[key] else { return arguments[1] }
          found = next
        }
        return found
      default: return nil
      }
    default: return nil
    }
  }

  private static func mapDiff(
    _ name: String,
    _ diff: RuleMapDiff,
    _ arguments: [RuleValue]
  ) -> RuleValue? {
    guard arguments.isEmpty else { return nil }
    let keys: [String]
    switch name {
    case "addedKeys": keys = diff.added
    case "removedKeys": keys = diff.removed
    case "changedKeys": keys = diff.changed
    case "unchangedKeys": keys = diff.unchanged
    case "affectedKeys": keys = diff.added + diff.removed + diff.changed
    default: return nil
    }
    return .set(RuleSet(keys.map(RuleValue.string)))
  }

  private static func timestamp(
    _ name: String,
    _ time: RuleTimestamp,
    _ arguments: [RuleValue]
  ) -> RuleValue? {
    guard arguments.isEmpty else { return nil }
    let secondOfDay = ((time.seconds % 86_400) + 86_400) % 86_400
    let day = (time.seconds - secondOfDay) / 86_400
    let date = Timestamp.civil(daysSince1970: day)
    switch name {
    case "year": return .int(date.year)
    case "month": return .int(date.month)
    case "day": return .int(date.day)
    case "hours": return .int(secondOfDay / 3600)
    case "minutes": return .int(secondOfDay / 60 % 60)
    case "seconds": return .int(secondOfDay % 60)
    case "nanos": return .int(Int64(time.nanos))
    case "toMillis": return .int(time.seconds * 1000 + Int64(time.nanos) / 1_000_000)
    case "dayOfYear": return .int(day - Timestamp.days(year: date.year, month: 1, day: 1) + 1)
    // 1970 began on a Thursday.
    case "dayOfWeek": return .int(((day + 3) % 7 + 7) % 7 + 1)
    case "date": return .timestamp(RuleTimestamp(seconds: time.seconds - secondOfDay, nanos: 0))
    case "time":
      return .duration(
        RuleDuration(totalNanos: Int128(secondOfDay) * 1_000_000_000 + Int128(time.nanos))
      )
    default: return nil
    }
  }

  private static func duration(
    _ name: String,
    _ span: RuleDuration,
    _ arguments: [RuleValue]
  ) -> RuleValue? {
    guard arguments.isEmpty else { return nil }
    switch name {
    case "seconds": return .int(Int64(span.totalNanos / 1_000_000_000))
    case "nanos": return .int(Int64(span.totalNanos % 1_000_000_000))
    default: return nil
    }
  }

  private static func latlng(
    _ name: String,
    _ point: GeoPoint,
    _ arguments: [RuleValue]
  ) -> RuleValue? {
    switch (name, arguments.first) {
    case ("latitude", nil): .float(point.latitude)
    case ("longitude", nil): .float(point.longitude)
    case ("distance", .latlng(let other)): .float(distance(point, other))
    default: nil
    }
  }

  /// Returns the great-circle distance in meters on a sphere with the earth's mean radius.
  private static func distance(_ a: GeoPoint, _ b: GeoPoint) -> Double {
    let radians = Double.pi / 180
    let (latitude, other) = (a.latitude * radians, b.latitude * radians)
    let height = sin((other - latitude) / 2)
    let width = sin((b.longitude - a.longitude) * radians / 2)
    let chord = height * height + cos(latitude) * cos(other) * width * width
    return 2 * asin(min(1, chord.squareRoot())) * 6_371_010
  }

  private static func path(
    _ name: String,
    _ path: RulePath,
    _ arguments: [RuleValue]
  ) throws(OperationError) -> RuleValue? {
    guard name == "bind", case .map(let values) = arguments.first else { return nil }
    var bound = RulePath([])
    var names: Set<ExactText> = []
    for segment in path.segments {
      guard path.hasPlaceholders, segment.hasPrefix("{"), segment.hasSuffix("}") else {
        bound.segments.append(segment)
        continue
      }
      let name = segment.dropFirst().dropLast().split(separator: "=").first.map(String.init) ?? ""
      guard case .string(let value) = values[name] else { return nil }
      guard !value.isEmpty else {
        throw OperationError(message: "Cannot bind empty value to path template variable \(name).")
      }
      names.insert(ExactText(name))
      bound.segments.append(value)
    }
    if let other = values.keys.first(where: { !names.contains(ExactText($0)) }) {
      throw OperationError(message: "Variable(s) \(other) do not exist in the path template.")
    }
    return .path(bound)
  }
}

extension String {
  fileprivate init(scalars: some Sequence<Unicode.Scalar>) {
    var view = UnicodeScalarView()
    view.append(contentsOf: scalars)
    self.init(view)
  }
}
