/// The CRC-32 of a stream of bytes.
struct Checksum: Sendable {
  /// The polynomial of a checksum, with its bits reversed.
  enum Polynomial: UInt32 {
    /// The polynomial of zlib, gzip and zip.
    case ieee = 0xEDB8_8320
    /// The polynomial of CRC-32C, which LevelDB uses.
    case castagnoli = 0x82F6_3B78
  }

  private var state: UInt32 = ~0
  private let tables: [UInt32]

  /// Creates the checksum of no bytes.
  init(_ polynomial: Polynomial = .ieee) {
    tables = polynomial == .ieee ? Self.ieeeTables : Self.castagnoliTables
  }

  /// The checksum so far.
  var value: UInt32 { ~state }

  /// The checksum so far, as eight hexadecimal digits.
  var text: String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }

  /// Adds the next bytes.
  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var crc = state
    tables.withUnsafeBufferPointer { tables in
      var index = 0
      // Each step processes eight bytes. The tables contain each byte's effect at its distance.
      while bytes.count - index >= 8 {
        let low = crc ^ bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self).littleEndian
        let high = bytes.loadUnaligned(fromByteOffset: index + 4, as: UInt32.self).littleEndian
        crc =
          tables[7 * 256 + Int(low & 0xFF)] ^ tables[6 * 256 + Int(low >> 8 & 0xFF)]
          ^ tables[5 * 256 + Int(low >> 16 & 0xFF)] ^ tables[4 * 256 + Int(low >> 24)]
          ^ tables[3 * 256 + Int(high & 0xFF)] ^ tables[2 * 256 + Int(high >> 8 & 0xFF)]
          ^ tables[256 + Int(high >> 16 & 0xFF)] ^ tables[Int(high >> 24)]
        index += 8
      }
      while index < bytes.count {
        crc = tables[Int((crc ^ UInt32(bytes[index])) & 0xFF)] ^ (crc >> 8)
        index += 1
      }
    }
    state = crc
  }

  private static let ieeeTables = tables(of: .ieee)
  private static let castagnoliTables = tables(of: .castagnoli)

  /// Returns lookup tables; table *n* contains a byte's effect on the checksum *n* bytes later.
  private static func tables(of polynomial: Polynomial) -> [UInt32] {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for index in 0..<256 {
      var crc = UInt32(index)
      for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ polynomial.rawValue : crc >> 1 }
      tables[index] = crc
    }
    for index in 256..<tables.count {
      let before = tables[index - 256]
      tables[index] = (before >> 8) ^ tables[Int(before & 0xFF)]
    }
    return tables
  }
}
