package import DocumentModel
import Foundation
import JSONText
import StatusCodes

/// JSON in which an object with one special member stands for a value that JSON lacks.
///
/// The members are `$timestamp`, `$bytes`, `$reference`, `$geopoint`, `$double`, `$integer` and
/// `$vector`, as in the cases of `hearth rules test`. The console writes `__timestamp__` and so on,
/// which cannot be a document's own field.
package enum TaggedJSON {
  /// Reads the fields of a document from the text of an object.
  ///
  /// Throws `INVALID_ARGUMENT` with `place`, which names the document, and the mistake.
  package static func fields(
    of text: [UInt8],
    at place: String,
    in database: DatabaseName
  ) throws -> MapValue {
    let value = try parse(text, at: place)
    guard case .object(let members) = value else {
      throw StatusError.invalidArgument("\(place) must be an object, and is \(value.kind)")
    }
    return try fields(members, at: place, of: database)
  }

  /// Parses a text; throws `INVALID_ARGUMENT` with `place`, which names the text.
  static func parse(_ text: [UInt8], at place: String) throws -> JSONTree {
    do {
      return try JSONTree.parse(text)
    } catch {
      throw StatusError.invalidArgument("\(place) is not JSON: \(error.explanation(in: text))")
    }
  }

  /// Returns the fields of a document from the members of its object.
  static func fields(
    _ members: [(String, JSONTree)],
    at place: String,
    of database: DatabaseName
  ) throws -> MapValue {
    try TaggedReader(database: database).fields(members, at: place)
  }
}

/// The reader of a document's values.
private struct TaggedReader {
  let database: DatabaseName

  func fields(_ members: [(String, JSONTree)], at place: String) throws -> MapValue {
    var fields = MapValue()
    for (name, value) in members {
      guard !name.isEmpty, !ResourceID.isReserved(name) else {
        throw mistake(place, "has a field \(jsonQuoted(name)), which is no name of a field")
      }
      guard fields[name] == nil else { throw mistake(place, "has \(jsonQuoted(name)) twice") }
      fields[name] = try self.value(value, at: "\(place): \(name)")
    }
    return fields
  }

  private func value(_ value: JSONTree, at place: String) throws -> FirestoreValue {
    switch value {
    case .null: return .null
    case .boolean(let flag): return .boolean(flag)
    case .string(let text): return .string(text)
    case .number(.integer(let number)): return .integer(number)
    case .number(.double(let number)): return .double(number)
    case .number(.unsigned):
      throw mistake(place, "does not fit in 64 bits; {\"$double\": …} holds it less exactly")
    case .array(let elements):
      return .array(
        try elements.enumerated().map { index, element in
          if case .array = element {
            throw mistake("\(place)[\(index)]", "is a list in a list, which Firestore lacks")
          }
          return try self.value(element, at: "\(place)[\(index)]")
        }
      )
    case .object(let members):
      guard members.count == 1, let (name, inner) = members.first, let tag = Self.tag(name) else {
        return .map(try fields(members, at: place))
      }
      return try special(tag, inner, at: place)
    }
  }

  /// Returns the name of a special member in the form with `$`; nil for any other member.
  private static func tag(_ name: String) -> String? {
    if name.hasPrefix("$") { return name }
    return ResourceID.isReserved(name) ? "$\(name.dropFirst(2).dropLast(2))" : nil
  }

  /// Returns the value that an object with one special member stands for.
  private func special(
    _ name: String,
    _ value: JSONTree,
    at place: String
  ) throws -> FirestoreValue {
    switch (name, value) {
    case ("$timestamp", .string(let text)):
      if let time = Timestamp(text) { return .timestamp(time) }
    case ("$bytes", .string(let text)):
      if let bytes = Data(base64Encoded: text) { return .bytes(Array(bytes)) }
    case ("$reference", .string(let text)):
      let path = ResourcePath(slashSeparated: text)
      let isFine = path.segments.enumerated().allSatisfy {
        ResourceID.flaw(of: $1, isCollection: $0.isMultiple(of: 2)) == nil
      }
      if path.isDocument, isFine {
        return .reference(DocumentName(database: database, path: path))
      }
    case ("$geopoint", .array(let elements)):
      let numbers = elements.compactMap(double)
      if numbers.count == 2, elements.count == 2, abs(numbers[0]) <= 90, abs(numbers[1]) <= 180 {
        return .geoPoint(GeoPoint(latitude: numbers[0], longitude: numbers[1]))
      }
    case ("$integer", .string(let text)):
      if let number = Int64(text) { return .integer(number) }
    case ("$double", _):
      if let number = double(value) { return .double(number) }
    case ("$vector", .array(let elements)):
      let numbers = elements.compactMap(double)
      if numbers.count == elements.count { return .vector(numbers) }
    default: break
    }
    guard let form = Self.forms.first(where: { $0.name == name })?.form else {
      let names = Self.forms.map(\.name).joined(separator: ", ")
      throw mistake(place, "has \(jsonQuoted(name)), which is none of \(names)")
    }
    throw mistake(place, "must be written as \(form)")
  }

  /// The names of the special values, and how they are written.
  private static let forms = [
    (name: "$timestamp", form: #"{"$timestamp": "2026-01-31T12:00:00Z"}"#),
    (name: "$bytes", form: #"{"$bytes": "aGVsbG8="}, in base64"#),
    (name: "$reference", form: #"{"$reference": "users/tina"}"#),
    (name: "$geopoint", form: #"{"$geopoint": [52.5, 13.4]}, latitude and longitude"#),
    (name: "$integer", form: #"{"$integer": "9007199254740993"}"#),
    (name: "$double", form: #"{"$double": 3}, also with "NaN", "Infinity" or "-Infinity""#),
    (name: "$vector", form: #"{"$vector": [0.1, 0.2]}"#),
  ]

  private func double(_ value: JSONTree) -> Double? {
    switch value {
    case .number(let number): number.double
    case .string("NaN"): .nan
    case .string("Infinity"): .infinity
    case .string("-Infinity"): -.infinity
    default: nil
    }
  }

  private func mistake(_ place: String, _ reason: String) -> StatusError {
    .invalidArgument("\(place) \(reason)")
  }
}
