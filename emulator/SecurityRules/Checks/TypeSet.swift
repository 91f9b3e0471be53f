/// The possible types of a value; `any` if nothing is known about the value.
struct TypeSet: OptionSet, Sendable, Hashable {
  let rawValue: UInt32

  static let int = TypeSet(rawValue: 1 << 0)
  static let float = TypeSet(rawValue: 1 << 1)
  static let string = TypeSet(rawValue: 1 << 2)
  static let bytes = TypeSet(rawValue: 1 << 3)
  static let bool = TypeSet(rawValue: 1 << 4)
  static let null = TypeSet(rawValue: 1 << 5)
  static let list = TypeSet(rawValue: 1 << 6)
  static let set = TypeSet(rawValue: 1 << 7)
  static let map = TypeSet(rawValue: 1 << 8)
  static let mapDiff = TypeSet(rawValue: 1 << 9)
  static let path = TypeSet(rawValue: 1 << 10)
  static let timestamp = TypeSet(rawValue: 1 << 11)
  static let duration = TypeSet(rawValue: 1 << 12)
  static let latlng = TypeSet(rawValue: 1 << 13)
  static let vector = TypeSet(rawValue: 1 << 14)
  static let constraint = TypeSet(rawValue: 1 << 15)

  static let any = TypeSet(rawValue: .max)
  static let number: TypeSet = [.int, .float]

  /// The names of the types, in the order of their bits.
  private static let names = [
    "int", "float", "string", "bytes", "bool", "null", "list", "set", "map", "map_diff", "path",
    "timestamp", "duration", "latlng", "vector", "constraint",
  ]

  /// The list of types as messages show it, such as `[int, float]`.
  var description: String {
    let names = Self.names.enumerated().filter { contains(TypeSet(rawValue: 1 << $0.offset)) }
    return "[\(names.map(\.element).joined(separator: ", "))]"
  }

  /// Indicates whether a value of these types can equal one of the other types.
  ///
  /// Numbers are compared by value.
  func isComparable(with other: TypeSet) -> Bool {
    !isDisjoint(with: other)
      || !isDisjoint(with: .number) && !other.isDisjoint(with: .number)
  }
}

/// The parameter and result types of a function or a method.
struct TypeSignature: Sendable {
  /// The types that have the method.
  var receiver = TypeSet.any
  var arguments: [TypeSet] = []
  var result: TypeSet

  /// The methods by name.
  ///
  /// A method of several types has the same signature on each of them.
  static let methods: [String: TypeSignature] = {
    var methods: [String: TypeSignature] = [
      "size": .init(receiver: [.string, .bytes, .list, .set, .map], result: .int),
      "matches": .init(receiver: .string, arguments: [.string], result: .bool),
      "replace": .init(receiver: .string, arguments: [.string, .string], result: .string),
      "split": .init(receiver: .string, arguments: [.string], result: .list),
      "toUtf8": .init(receiver: .string, result: .bytes),
      "concat": .init(receiver: .list, arguments: [.list], result: .list),
      "removeAll": .init(receiver: .list, arguments: [.list], result: .list),
      "join": .init(receiver: .list, arguments: [.string], result: .string),
      "toSet": .init(receiver: .list, result: .set),
      "keys": .init(receiver: .map, result: .list),
      "values": .init(receiver: .map, result: .list),
      "get": .init(receiver: .map, arguments: [[.string, .list], .any], result: .any),
      "diff": .init(receiver: .map, arguments: [.map], result: .mapDiff),
      "seconds": .init(receiver: [.duration, .timestamp], result: .int),
      "nanos": .init(receiver: [.duration, .timestamp], result: .int),
      "date": .init(receiver: .timestamp, result: .timestamp),
      "time": .init(receiver: .timestamp, result: .duration),
      "latitude": .init(receiver: .latlng, result: .float),
      "longitude": .init(receiver: .latlng, result: .float),
      "distance": .init(receiver: .latlng, arguments: [.latlng], result: .float),
      "bind": .init(receiver: .path, arguments: [.map], result: .path),
    ]
    for name in ["lower", "upper", "trim"] {
      methods[name] = .init(receiver: .string, result: .string)
    }
    for name in ["toBase64", "toHexString"] {
      methods[name] = .init(receiver: .bytes, result: .string)
    }
    for name in ["hasAll", "hasAny", "hasOnly"] {
      methods[name] = .init(receiver: [.list, .set], arguments: [[.list, .set]], result: .bool)
    }
    for name in ["difference", "union", "intersection"] {
      methods[name] = .init(receiver: .set, arguments: [.set], result: .set)
    }
    for name in ["addedKeys", "removedKeys", "changedKeys", "unchangedKeys", "affectedKeys"] {
      methods[name] = .init(receiver: .mapDiff, result: .set)
    }
    let parts = [
      "year", "month", "day", "hours", "minutes", "toMillis", "dayOfYear", "dayOfWeek",
    ]
    for name in parts { methods[name] = .init(receiver: .timestamp, result: .int) }
    return methods
  }()

  /// The functions of packages, by package and name.
  static let packaged: [String: [String: TypeSignature]] = [
    "math": [
      "abs": .init(arguments: [.number], result: .number),
      "ceil": .init(arguments: [.number], result: .float),
      "floor": .init(arguments: [.number], result: .float),
      "round": .init(arguments: [.number], result: .int),
      "sqrt": .init(arguments: [.number], result: .float),
      "isNaN": .init(arguments: [.number], result: .bool),
      "pow": .init(arguments: [.number, .number], result: .float),
    ],
    "timestamp": [
      "date": .init(arguments: [.int, .int, .int], result: .timestamp),
      "value": .init(arguments: [[.int, .string]], result: .timestamp),
    ],
    "duration": [
      "value": .init(arguments: [.int, .string], result: .duration),
      "time": .init(arguments: [.int, .int, .int, .int], result: .duration),
      "abs": .init(arguments: [.duration], result: .duration),
    ],
    "latlng": ["value": .init(arguments: [.number, .number], result: .latlng)],
    "hashing": [
      "md5": .init(arguments: [[.bytes, .string]], result: .bytes),
      "sha256": .init(arguments: [[.bytes, .string]], result: .bytes),
      "crc32": .init(arguments: [[.bytes, .string]], result: .bytes),
      "crc32c": .init(arguments: [[.bytes, .string]], result: .bytes),
    ],
  ]

  /// Returns the signature of a built-in function that belongs to no package.
  static func global(_ function: GlobalFunction) -> TypeSignature {
    switch function {
    case .get, .getAfter: .init(arguments: [.path], result: .any)
    case .exists, .existsAfter: .init(arguments: [.path], result: .bool)
    case .debug: .init(arguments: [.any], result: .any)
    case .int: .init(arguments: [[.int, .float, .string]], result: .int)
    case .float: .init(arguments: [[.int, .float, .string]], result: .float)
    case .string:
      .init(arguments: [[.int, .float, .null, .string, .bool, .path]], result: .string)
    case .path: .init(arguments: [.string], result: .path)
    }
  }
}
