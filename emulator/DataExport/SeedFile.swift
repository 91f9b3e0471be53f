import DocumentModel
import Foundation
import JSONText
import StatusCodes

/// Documents that a person has written into one JSON file.
///
/// ```json
/// {"users/tina": {"name": "Tina", "born": {"$timestamp": "1990-04-01T00:00:00Z"}},
///  "users/tina/notes/n1": {"text": "Hello"}}
/// ```
///
/// A member's name is the path of a document, or that of a collection with its documents by id.
/// Values that JSON lacks are objects with one member: `$timestamp`, `$bytes`, `$reference`,
/// `$geopoint`, `$double` and `$vector`, as in the cases of `hearth rules test`.
struct SeedFile {
  /// The documents in file order; all of them have `time` as create and update time.
  private(set) var documents: [FirestoreDocument] = []

  private let database: DatabaseName
  private let time: Timestamp

  /// The maximum size of a file, which is read as a whole.
  static let bytesMax = 64 << 20

  /// Returns true if a path is that of a file rather than of an export's folder.
  static func isFile(_ path: String) -> Bool {
    var isFolder: ObjCBool = false
    return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
      && !isFolder.boolValue
  }

  /// Reads a file; throws `INVALID_ARGUMENT` that names the place of a mistake.
  init(path: String, database: DatabaseName, time: Timestamp) throws {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw StatusError(.notFound, "\(path) cannot be read.")
    }
    guard data.count <= Self.bytesMax else {
      throw StatusError.invalidArgument(
        "\(path) has more than \(Self.bytesMax >> 20) MiB; `hearth export` writes larger data."
      )
    }
    do {
      try self.init(json: Array(data), database: database, time: time)
    } catch let error as StatusError {
      throw StatusError(error.statusCode, "\(path): \(error.statusMessage)")
    }
  }

  /// Reads the text of a file.
  init(json text: [UInt8], database: DatabaseName, time: Timestamp) throws {
    self.database = database
    self.time = time
    var parser = JSONParser(SeedValue.Builder())
    let value: SeedValue
    do {
      value = try parser.parse(text)
    } catch {
      throw StatusError.invalidArgument("the file is not JSON: \(error.explanation(in: text))")
    }
    guard case .object(let members) = value else {
      throw StatusError.invalidArgument(
        "the file must be an object with documents by their paths, such as "
          + #"{"users/tina": {"name": "Tina"}}"#
      )
    }
    for (name, value) in members { try read(name, value, below: []) }
    var seen: Set<ResourcePath> = []
    for document in documents where !seen.insert(document.name.path).inserted {
      throw StatusError.invalidArgument("the document \(document.name.path) is there twice")
    }
  }

  /// Reads a document or a collection at a path.
  private mutating func read(_ name: String, _ value: SeedValue, below outer: [String]) throws {
    let path = ResourcePath(outer + ResourcePath(slashSeparated: name).segments)
    let hasFlaw = path.segments.enumerated().contains {
      ResourceID.flaw(of: $1, isCollection: $0.isMultiple(of: 2)) != nil
    }
    guard !name.isEmpty, !hasFlaw else {
      throw StatusError.invalidArgument(
        "\(jsonQuoted(name)) is no path: write one such as users/tina, without a slash at its ends"
      )
    }
    guard case .object(let members) = value else {
      let what = path.isDocument ? "an object of its fields" : "an object of its documents"
      throw StatusError.invalidArgument("\(path) must be \(what), and is \(value.kind)")
    }
    guard path.isDocument else {
      for (id, document) in members { try read(id, document, below: path.segments) }
      return
    }
    let fields = try SeedReader(database: database).fields(members, at: "\(path)")
    documents.append(
      FirestoreDocument(
        name: DocumentName(database: database, path: path),
        fields: fields,
        createTime: time,
        updateTime: time
      )
    )
  }
}

/// A value of a seed file as it is written.
private indirect enum SeedValue {
  case null
  case boolean(Bool)
  case number(JSONNumber)
  case string(String)
  case array([SeedValue])
  case object([(String, SeedValue)])

  var kind: String {
    switch self {
    case .null: "null"
    case .boolean(let flag): String(flag)
    case .number: "a number"
    case .string: "a text"
    case .array: "a list"
    case .object: "an object"
    }
  }

  struct Builder: JSONBuilder {
    func null() -> SeedValue { .null }
    func boolean(_ flag: Bool) -> SeedValue { .boolean(flag) }
    func number(_ number: JSONNumber) -> SeedValue? {
      number.double.isFinite ? .number(number) : nil
    }
    func string(_ text: String) -> SeedValue { .string(text) }
    func array(_ elements: [SeedValue]) -> SeedValue { .array(elements) }
    func object(_ members: [(String, SeedValue)]) -> SeedValue { .object(members) }
  }
}

/// The reader of a document's values.
private struct SeedReader {
  let database: DatabaseName

  func fields(_ members: [(String, SeedValue)], at place: String) throws -> MapValue {
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

  private func value(_ value: SeedValue, at place: String) throws -> FirestoreValue {
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
      guard members.count == 1, let (name, inner) = members.first, name.hasPrefix("$") else {
        return .map(try fields(members, at: place))
      }
      return try special(name, inner, at: place)
    }
  }

  /// Returns the value that an object with one `$` member stands for.
  private func special(
    _ name: String,
    _ value: SeedValue,
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
    (name: "$double", form: #"{"$double": 3}, also with "NaN", "Infinity" or "-Infinity""#),
    (name: "$vector", form: #"{"$vector": [0.1, 0.2]}"#),
  ]

  private func double(_ value: SeedValue) -> Double? {
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
