import DocumentModel

/// Random values of every type, nested, biased toward edge cases of the encodings.
struct RandomValues<Generator: RandomNumberGenerator> {
  var random: Generator

  mutating func value(depth: Int = 0) -> FirestoreValue {
    switch Int.random(in: 0..<(depth < 3 ? 14 : 10), using: &random) {
    case 0: .null
    case 1: .boolean(Bool.random(using: &random))
    case 2...3: .integer(integer())
    case 4...5: .double(double())
    case 6:
      .timestamp(
        Timestamp(
          microseconds: Int64.random(
            in: -62_135_596_800_000_000...253_402_300_799_999_999,
            using: &random
          )
        )
      )
    case 7: .string(text())
    case 8: .bytes(bytes())
    case 9:
      Bool.random(using: &random)
        ? .reference(documentName()) : .geoPoint(GeoPoint(latitude: double(), longitude: double()))
    case 10...11: .array((0..<count(3)).map { _ in value(depth: depth + 1) })
    case 12: .vector((0..<count(3)).map { _ in double() })
    default: .map(fields(depth: depth + 1))
    }
  }

  /// Returns a similar value: equal, or different in one place.
  mutating func neighbour(of value: FirestoreValue) -> FirestoreValue {
    switch value {
    case .integer(let number):
      return Bool.random(using: &random)
        ? .double(Double(number)) : .integer(number == .max ? number - 1 : number + 1)
    case .double(let number):
      return Bool.random(using: &random) ? .double(number.nextUp) : .double(-number)
    case .string(let text): return .string(text + (Bool.random(using: &random) ? "\0" : "a"))
    case .bytes(let data): return .bytes(data + [UInt8.random(in: 0...1, using: &random)])
    case .array(let elements):
      return elements.isEmpty || Bool.random(using: &random)
        ? .array(elements + [self.value(depth: 3)])
        : .array(elements.dropLast() + [neighbour(of: elements[elements.count - 1])])
    case .vector(let elements): return .vector(elements.dropLast() + [double()])
    case .map(var fields):
      if let key = fields.keys.randomElement(using: &random), let old = fields[key] {
        fields[key] = Bool.random(using: &random) ? nil : neighbour(of: old)
      } else {
        fields[text()] = .null
      }
      return .map(fields)
    default: return value
    }
  }

  mutating func fields(depth: Int = 0) -> MapValue {
    var fields: MapValue = [:]
    for _ in 0..<count(4) { fields[text()] = value(depth: depth) }
    return fields
  }

  mutating func integer() -> Int64 {
    let edges: [Int64] = [
      .min, .min + 1, .max, .max - 1, 0, 1, -1, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1, 1 << 62,
    ]
    let base = edges.randomElement(using: &random) ?? 0
    return switch Int.random(in: 0..<3, using: &random) {
    case 0: base
    case 1: base &+ Int64.random(in: -3...3, using: &random)
    default:
      Int64.random(in: .min ... .max, using: &random) >> Int64.random(in: 0..<64, using: &random)
    }
  }

  mutating func double() -> Double {
    let edges: [Double] = [
      0, -0.0, .nan, -.nan, .infinity, -.infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude,
      0x1p53, -0x1p53, 0x1p63, -0x1p63, 0x1p64, 0.5, 1, -1, .pi,
    ]
    return switch Int.random(in: 0..<4, using: &random) {
    case 0: edges.randomElement(using: &random) ?? 0
    case 1: Double(integer())
    case 2: (edges.randomElement(using: &random) ?? 0).nextUp
    default: Double(bitPattern: random.next())
    }
  }

  mutating func text() -> String {
    let alphabet = [
      "", "\0", "\u{1}", "a", "b", "~", "\u{7F}", "\u{80}", "é", "e\u{301}", "ﬀ", "\u{FF5E}",
      "\u{FFFF}", "😀", "__id", "7", ".", "`", "\\",
    ]
    let length = count(4)
    return (0..<length).map { _ in alphabet.randomElement(using: &random) ?? "" }.joined()
  }

  mutating func bytes() -> [UInt8] {
    let edges: [UInt8] = [0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF]
    return (0..<count(5)).map { _ in edges.randomElement(using: &random) ?? 0 }
  }

  mutating func id() -> String {
    switch Int.random(in: 0..<4, using: &random) {
    case 0: "__id\(integer())__"
    case 1:
      ["__id007__", "__id__", "__id-0__", "__id9223372036854775808__", "__id 1__"]
        .randomElement(using: &random) ?? ""
    default: text() + "x"
    }
  }

  mutating func documentName() -> DocumentName {
    DocumentName(
      database: DatabaseName(
        project: Bool.random(using: &random) ? "p" : "p\u{0}q",
        database: Bool.random(using: &random) ? "(default)" : "other"
      ),
      path: ResourcePath((0..<2 * (1 + count(2))).map { _ in id() })
    )
  }

  private mutating func count(_ most: Int) -> Int { Int.random(in: 0...most, using: &random) }
}
