import DatabaseModel
import DocumentModel
import StorageEngine

/// The rows of stored nodes.
///
/// A leaf has a row, and so has an object with a priority. Any other object exists by the rows
/// below it. The keys have the order of a walk through the tree, children in the order of
/// `DatabaseKey`, so a node with everything below it is one range.
enum NodeRows {
  static let keyspace = Keyspace("rtdb_nodes")

  /// The value of a row.
  struct Row: Equatable {
    /// The value of a leaf; nil for an object with a priority.
    var leaf: DatabaseLeaf?
    var priority: DatabaseLeaf?
  }

  // MARK: Keys

  private static let separator: UInt8 = 0
  private static let integerTag: UInt8 = 1
  private static let textTag: UInt8 = 2

  /// Returns the start of all keys of an instance.
  static func prefix(instance: String) -> [UInt8] {
    Array(instance.utf8) + [separator]
  }

  /// Returns the key of a node, which is also the start of the keys of everything below it.
  static func key(instance: String, _ path: DatabasePath) -> [UInt8] {
    var bytes = prefix(instance: instance)
    for key in path.keys { append(DatabaseKey(key), to: &bytes) }
    return bytes
  }

  /// Adds a key in a form whose bytes have the order of `DatabaseKey`.
  static func append(_ key: DatabaseKey, to bytes: inout [UInt8]) {
    if let integer = key.integer {
      bytes.append(integerTag)
      // The order is by value, then by length, then by text.
      let unsigned = UInt32(bitPattern: integer) ^ 0x8000_0000
      withUnsafeBytes(of: unsigned.bigEndian) { bytes += $0 }
      let length = UInt16(key.text.utf8.count)
      withUnsafeBytes(of: length.bigEndian) { bytes += $0 }
    } else {
      bytes.append(textTag)
    }
    bytes += key.text.utf8.lazy.map(String.utf16Rank)
    bytes.append(separator)
  }

  /// Reads the key that starts at `index`, and moves `index` behind it.
  static func key(in bytes: [UInt8], at index: inout Int) throws(CorruptDataError) -> DatabaseKey {
    guard index < bytes.count else { throw CorruptDataError("the key of a node is damaged") }
    switch bytes[index] {
    case integerTag: index += 7
    case textTag: index += 1
    default: throw CorruptDataError("the key of a node is damaged")
    }
    guard index <= bytes.count, let end = bytes[index...].firstIndex(of: separator) else {
      throw CorruptDataError("the key of a node is damaged")
    }
    let text = bytes[index..<end].lazy.map { $0 == 0xF6 ? 0xEE : $0 == 0xF7 ? 0xEF : $0 }
    index = end + 1
    return DatabaseKey(String(decoding: text, as: UTF8.self))
  }

  // MARK: Values

  static func encode(_ row: Row) -> [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(row.priority)
    encoder.append(row.leaf)
    return encoder.bytes
  }

  static func decode(_ bytes: [UInt8]) throws(CorruptDataError) -> Row {
    var decoder = BinaryDecoder(bytes)
    let priority = try decoder.databaseLeaf()
    return Row(leaf: try decoder.databaseLeaf(), priority: priority)
  }
}

extension BinaryEncoder {
  mutating func append(_ leaf: DatabaseLeaf?) {
    switch leaf {
    case nil: append(byte: 0)
    case .boolean(let flag): append(byte: flag ? 2 : 1)
    case .number(let number):
      append(byte: 3)
      append(number)
    case .string(let text):
      append(byte: 4)
      append(text)
    }
  }
}

extension BinaryDecoder {
  mutating func databaseLeaf() throws(CorruptDataError) -> DatabaseLeaf? {
    switch try byte() {
    case 0: nil
    case 1: .boolean(false)
    case 2: .boolean(true)
    case 3: .number(try double())
    case 4: .string(try text())
    case let tag: throw CorruptDataError("unknown kind of leaf \(tag)")
    }
  }
}
