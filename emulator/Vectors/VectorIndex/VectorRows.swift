import DocumentModel
import StorageEngine

/// How indexes and vectors lie in storage.
enum VectorRows {
  static let indexes = Keyspace("vector_indexes")
  static let records = Keyspace("vectors")

  static func indexKey(_ name: String) -> [UInt8] {
    var key = KeyEncoder()
    key.append(text: name)
    return key.bytes
  }

  static func namespaceKey(_ index: String, _ namespace: String) -> [UInt8] {
    var key = KeyEncoder(prefix: indexKey(index))
    key.append(text: namespace)
    return key.bytes
  }

  static func recordKey(_ index: String, _ namespace: String, _ id: String) -> [UInt8] {
    var key = KeyEncoder(prefix: namespaceKey(index, namespace))
    key.append(text: id)
    return key.bytes
  }

  static func bytes(_ description: VectorIndexDescription) -> [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(byte: version)
    encoder.append(description.name)
    encoder.append(UInt64(description.dimension))
    encoder.append(description.metric.rawValue)
    encoder.append(byte: description.isProtected ? 1 : 0)
    encoder.append(UInt64(description.tags.count))
    for (key, value) in description.tags {
      encoder.append(key)
      encoder.append(value)
    }
    return encoder.bytes
  }

  static func description(_ bytes: [UInt8]) throws(CorruptDataError) -> VectorIndexDescription {
    var decoder = BinaryDecoder(bytes)
    try checkVersion(&decoder)
    let name = try decoder.text()
    let dimension = Int(truncatingIfNeeded: try decoder.number())
    guard let metric = VectorIndexDescription.Metric(rawValue: try decoder.text()) else {
      throw CorruptDataError("unknown metric of vector index \(name)")
    }
    let isProtected = try decoder.byte() == 1
    var tags: [String: String] = [:]
    for _ in 0..<(try decoder.count()) {
      let key = try decoder.text()
      tags[key] = try decoder.text()
    }
    return VectorIndexDescription(
      name: name,
      dimension: dimension,
      metric: metric,
      tags: tags,
      isProtected: isProtected
    )
  }

  static func bytes(_ record: VectorRecord, index: String, namespace: String) -> [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(byte: version)
    encoder.append(index)
    encoder.append(namespace)
    encoder.append(record.id)
    encoder.append(data: bytes(record.values))
    encoder.append(UInt64(record.metadata.count))
    for (key, value) in record.metadata {
      encoder.append(key)
      switch value {
      case .string(let text): encoder.append(.string(text))
      case .number(let number): encoder.append(.double(number))
      case .boolean(let flag): encoder.append(.boolean(flag))
      case .strings(let texts): encoder.append(.array(texts.map { .string($0) }))
      }
    }
    return encoder.bytes
  }

  /// Little-endian IEEE 754, four bytes a value.
  private static func bytes(_ values: [Float]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(values.count * 4)
    for value in values {
      withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
    }
    return bytes
  }

  static func row(_ bytes: [UInt8]) throws(CorruptDataError) -> VectorPage.Row {
    var decoder = BinaryDecoder(bytes)
    try checkVersion(&decoder)
    let index = try decoder.text()
    let namespace = try decoder.text()
    let id = try decoder.text()
    let raw = try decoder.data()
    let values = stride(from: 0, to: raw.count - 3, by: 4).map { start in
      var bits: UInt32 = 0
      for offset in 0..<4 { bits |= UInt32(raw[start + offset]) << UInt32(offset * 8) }
      return Float(bitPattern: bits)
    }
    var metadata: [String: MetadataValue] = [:]
    for _ in 0..<(try decoder.count()) {
      let key = try decoder.text()
      switch try decoder.value() {
      case .string(let text): metadata[key] = .string(text)
      case .double(let number): metadata[key] = .number(number)
      case .boolean(let flag): metadata[key] = .boolean(flag)
      case .array(let elements):
        metadata[key] = .strings(
          elements.compactMap { element in
            if case .string(let text) = element { text } else { nil }
          }
        )
      default: throw CorruptDataError("metadata of vector \(id) has an unknown type")
      }
    }
    return VectorPage.Row(
      index: index,
      namespace: namespace,
      record: VectorRecord(id: id, values: values, metadata: metadata)
    )
  }

  private static let version: UInt8 = 1

  private static func checkVersion(_ decoder: inout BinaryDecoder) throws(CorruptDataError) {
    let found = try decoder.byte()
    guard found == version else { throw CorruptDataError("unknown vector row version \(found)") }
  }
}
