import JSONText

/// A value of the rules' JSON with its place.
struct PlacedJSON {
  enum Value {
    case null, number
    case boolean(Bool)
    case string(String)
    case array([PlacedJSON])
    case object([(offset: Int, key: String, value: PlacedJSON)])
  }

  /// The offset of the first byte.
  var offset: Int
  /// The offset of the last byte.
  var last: Int
  var value: Value

  static func parse(_ text: RulesText) throws(DatabaseRulesError) -> PlacedJSON {
    do {
      return try text.json.withUnsafeBytes { bytes in
        var scanner = JSONScanner(bytes, loneSurrogates: .replaced)
        let value = try read(&scanner, bytes)
        try scanner.finish()
        return value
      }
    } catch let error as JSONSyntaxError {
      throw text.error(at: error.offset, "Syntax error: \(error.reason).")
    } catch {
      throw text.error(at: 0, "Syntax error: \(error).")
    }
  }

  private static func read(
    _ scanner: inout JSONScanner,
    _ bytes: UnsafeRawBufferPointer
  ) throws -> PlacedJSON {
    let offset = next(scanner.index, bytes)
    let value: Value
    switch try scanner.token() {
    case .null: value = .null
    case .boolean(let flag): value = .boolean(flag)
    case .number: value = .number
    case .string(let text): value = .string(text)
    case .arrayStart:
      var elements: [PlacedJSON] = []
      while try scanner.hasElement() { elements.append(try read(&scanner, bytes)) }
      value = .array(elements)
    case .objectStart:
      var members: [(offset: Int, key: String, value: PlacedJSON)] = []
      while true {
        let offset = next(scanner.index, bytes)
        guard let key = try scanner.name() else { break }
        members.append((offset, key, try read(&scanner, bytes)))
      }
      value = .object(members)
    }
    return PlacedJSON(offset: offset, last: scanner.index - 1, value: value)
  }

  /// Returns the offset of the next byte that is neither space nor a comma.
  private static func next(_ offset: Int, _ bytes: UnsafeRawBufferPointer) -> Int {
    bytes[offset...].firstIndex { $0 > 0x20 && $0 != UInt8(ascii: ",") } ?? bytes.count
  }
}
