import DocumentModel
import Foundation
import JSONText

/// A value in a test file with its location, which error messages name.
struct RulesTestMember {
  typealias MistakeError = RulesTestFile.MistakeError

  /// The path of the value, such as `cases[3].auth.uid`; empty for the whole file.
  let place: String
  private let json: JSONTree

  private init(_ place: String, _ json: JSONTree) {
    self.place = place
    self.json = json
  }

  /// Parses a whole file.
  init(json text: [UInt8]) throws(MistakeError) {
    do throws(JSONSyntaxError) { self.init("", try JSONTree.parse(text)) } catch {
      throw MistakeError(place: "", reason: "is not JSON: \(error.explanation(in: text))")
    }
  }

  func mistake(_ reason: String) -> MistakeError { MistakeError(place: place, reason: reason) }

  private func expected(_ what: String) -> MistakeError {
    mistake("must be \(what), and is \(json.kind)")
  }

  var isNull: Bool { if case .null = json { true } else { false } }

  // MARK: Members and elements

  /// Returns the members of an object with their names, in file order.
  func members() throws(MistakeError) -> [(name: String, member: RulesTestMember)] {
    guard case .object(let object) = json else { throw expected("an object") }
    var members: [(name: String, member: RulesTestMember)] = []
    var names: Set<[UInt8]> = []
    for (name, json) in object {
      let member = RulesTestMember(Self.place(of: name, in: place), json)
      guard names.insert(Array(name.utf8)).inserted else { throw member.mistake("is given twice") }
      members.append((name, member))
    }
    return members
  }

  /// Returns the members of an object; throws if it has a member that is not in `known`.
  func object(_ known: [String]) throws(MistakeError) -> [String: RulesTestMember] {
    var members: [String: RulesTestMember] = [:]
    for (name, member) in try self.members() {
      guard known.contains(name) else {
        throw member.mistake("is none of \(known.joined(separator: ", "))")
      }
      members[name] = member
    }
    return members
  }

  private static func place(of name: String, in outer: String) -> String {
    let isPlain =
      !name.isEmpty
      && name.unicodeScalars.allSatisfy { Lexer.isLetter($0) || Lexer.isDigit($0) || $0 == "$" }
    guard isPlain else { return "\(outer)[\(jsonQuoted(name))]" }
    return outer.isEmpty ? name : "\(outer).\(name)"
  }

  func list() throws(MistakeError) -> [RulesTestMember] {
    guard case .array(let elements) = json else { throw expected("a list") }
    return elements.enumerated().map { RulesTestMember("\(place)[\($0)]", $1) }
  }

  // MARK: Plain values

  func text() throws(MistakeError) -> String {
    guard case .string(let text) = json else { throw expected("a text") }
    guard !text.isEmpty else { throw mistake("must not be empty") }
    return text
  }

  func flag() throws(MistakeError) -> Bool {
    guard case .boolean(let flag) = json else { throw expected("true or false") }
    return flag
  }

  /// Reads a string that must be one of the type's raw values.
  func word<Word: RawRepresentable & CaseIterable>(
    _ type: Word.Type
  ) throws(MistakeError) -> Word where Word.RawValue == String {
    let all = Word.allCases.map(\.rawValue).joined(separator: ", ")
    guard case .string(let text) = json else { throw expected("one of \(all)") }
    guard let word = Word(rawValue: text) else {
      throw mistake("must be one of \(all), and is \(jsonQuoted(text))")
    }
    return word
  }

  /// Reads an integer that is at least `least`.
  func count(from least: Int64) throws(MistakeError) -> RuleValue {
    guard case .number(.integer(let count)) = json, count >= least else {
      throw mistake("must be a whole number from \(least) on")
    }
    return .int(count)
  }

  func timestamp() throws(MistakeError) -> Timestamp {
    guard let timestamp = Timestamp(try text()) else {
      throw mistake("must be a time as RFC 3339 spells it, such as 2026-01-31T12:00:00Z")
    }
    return timestamp
  }

  /// Parses a path from the text or the name of this member.
  func path(_ text: String) throws(MistakeError) -> ResourcePath {
    let path = ResourcePath(slashSeparated: text)
    for (place, id) in path.segments.enumerated() {
      switch ResourceID.flaw(of: id, isCollection: place.isMultiple(of: 2)) {
      case nil: continue
      case .isEmpty: throw mistake("has a slash too many; a path begins with a collection's name")
      default: throw mistake("\(jsonQuoted(id)) cannot be a part of a path")
      }
    }
    return path
  }

  func fieldPath() throws(MistakeError) -> FieldPath {
    guard let path = FieldPath(try text()) else {
      throw mistake("must be a field's name; an unusual one stands in `backticks`")
    }
    return path
  }

  // MARK: Stored values

  func fields() throws(MistakeError) -> MapValue {
    var fields = MapValue()
    for (name, member) in try members() {
      guard !name.isEmpty, !ResourceID.isReserved(name) else {
        throw member.mistake("is not a name that a field can have")
      }
      fields[name] = try member.value()
    }
    return fields
  }

  func value() throws(MistakeError) -> FirestoreValue {
    switch json {
    case .null: return .null
    case .boolean(let flag): return .boolean(flag)
    case .string(let text): return .string(text)
    case .number(.integer(let number)): return .integer(number)
    case .number(.double(let number)): return .double(number)
    case .number(.unsigned):
      throw mistake("does not fit in 64 bits; {\"$double\": …} holds it less exactly")
    case .array:
      var values: [FirestoreValue] = []
      for element in try list() {
        if case .array = element.json { throw element.mistake("a list cannot stand in a list") }
        values.append(try element.value())
      }
      return .array(values)
    case .object(let members):
      if members.count == 1, members[0].0.hasPrefix("$"),
        let (name, member) = try self.members().first
      {
        return try member.special(name)
      }
      return .map(try fields())
    }
  }

  /// Returns the value that an object with one `$` member stands for; `self` is that member.
  private func special(_ name: String) throws(MistakeError) -> FirestoreValue {
    switch name {
    case "$timestamp": return .timestamp(try timestamp())
    case "$bytes":
      guard case .string(let text) = json, let bytes = Data(base64Encoded: text) else {
        throw mistake("must be a text in base64")
      }
      return .bytes(Array(bytes))
    case "$reference":
      let path = try path(try text())
      guard path.isDocument else {
        throw mistake("must be the path of a document, such as users/alice")
      }
      return .reference(DocumentName(database: RulesTestFile.database, path: path))
    case "$geopoint":
      let numbers = try numbers()
      guard numbers.count == 2, (-90...90).contains(numbers[0]), (-180...180).contains(numbers[1])
      else { throw mistake("must be a latitude and a longitude, such as [52.5, 13.4]") }
      return .geoPoint(GeoPoint(latitude: numbers[0], longitude: numbers[1]))
    case "$integer":
      guard case .string(let text) = json, let number = Int64(text) else {
        throw mistake("must be a whole number in quotes, such as \"9007199254740993\"")
      }
      return .integer(number)
    case "$double": return .double(try double())
    case "$vector": return .vector(try numbers())
    default:
      throw mistake(
        "is none of $timestamp, $bytes, $reference, $geopoint, $integer, $double, $vector"
      )
    }
  }

  private func numbers() throws(MistakeError) -> [Double] {
    var numbers: [Double] = []
    for element in try list() { numbers.append(try element.double()) }
    return numbers
  }

  private func double() throws(MistakeError) -> Double {
    switch json {
    case .number(let number): return number.double
    case .string("NaN"): return .nan
    case .string("Infinity"): return .infinity
    case .string("-Infinity"): return -.infinity
    default: throw expected("a number, or \"NaN\", \"Infinity\" or \"-Infinity\"")
    }
  }
}
