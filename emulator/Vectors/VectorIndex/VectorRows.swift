import DocumentModel
import StorageEngine

/// The storage format of indexes, namespaces and records.
enum VectorRows {
  static let indexes = Keyspace("vector_indexes")
  static let namespaces = Keyspace("vector_namespaces")
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

  /// Returns the key prefix of the records whose ids have a prefix.
  ///
  /// Ids contain no zero byte, so keys and ids have the same order.
  static func idPrefixKey(_ index: String, _ namespace: String, _ prefix: String) -> [UInt8] {
    var key = KeyEncoder(prefix: namespaceKey(index, namespace))
    key.append(raw: prefix.utf8)
    return key.bytes
  }

  static func bytes(_ description: VectorIndexDescription) -> [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(byte: descriptionVersion)
    encoder.append(description.name)
    encoder.append(UInt64(description.dimension))
    encoder.append(description.metric.rawValue)
    encoder.append(byte: description.isProtected ? 1 : 0)
    encoder.append(UInt64(description.tags.count))
    for (key, value) in description.tags {
      encoder.append(key)
      encoder.append(value)
    }
    encoder.append(description.field)
    encoder.append(description.cloud)
    encoder.append(description.region)
    return encoder.bytes
  }

  static func description(_ bytes: [UInt8]) throws(CorruptDataError) -> VectorIndexDescription {
    var decoder = BinaryDecoder(bytes)
    let found = try checkVersion(&decoder, upTo: descriptionVersion)
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
    var description = VectorIndexDescription(
      name: name,
      dimension: dimension,
      metric: metric,
      tags: tags,
      isProtected: isProtected
    )
    // The first version had only plain vectors and a single cloud and region.
    if found > 1 {
      description.field = try decoder.text()
      description.cloud = try decoder.text()
      description.region = try decoder.text()
    }
    return description
  }

  /// A namespace with its index.
  struct NamespaceRow: Sendable {
    var index: String
    var name: String
    var filterableFields: [String]

    var key: [UInt8] { namespaceKey(index, name) }

    /// Returns the expectation that the row has a version; nil if it must not exist.
    func expectation(version: UInt64?) -> VersionExpectation {
      VersionExpectation(namespaces, key, version: version)
    }
  }

  static func bytes(_ row: NamespaceRow) -> [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(byte: version)
    encoder.append(row.index)
    encoder.append(row.name)
    encoder.append(UInt64(row.filterableFields.count))
    for field in row.filterableFields { encoder.append(field) }
    return encoder.bytes
  }

  static func namespace(_ bytes: [UInt8]) throws(CorruptDataError) -> NamespaceRow {
    var decoder = BinaryDecoder(bytes)
    try checkVersion(&decoder)
    var row = NamespaceRow(
      index: try decoder.text(),
      name: try decoder.text(),
      filterableFields: []
    )
    for _ in 0..<(try decoder.count()) { row.filterableFields.append(try decoder.text()) }
    return row
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

  /// Encodes values as little-endian IEEE 754, four bytes per value.
  private static func bytes(_ values: [Float]) -> [UInt8] {
    let bits = values.map(\.bitPattern.littleEndian)
    return bits.withUnsafeBytes { Array($0) }
  }

  private static func values(_ bytes: [UInt8]) -> [Float] {
    bytes.withUnsafeBytes { raw in
      (0..<raw.count / 4).map { place in
        let bits = raw.loadUnaligned(fromByteOffset: place * 4, as: UInt32.self)
        return Float(bitPattern: UInt32(littleEndian: bits))
      }
    }
  }

  /// Decodes only the id, without the large values and metadata.
  static func id(_ bytes: [UInt8]) throws(CorruptDataError) -> String {
    var decoder = BinaryDecoder(bytes)
    try checkVersion(&decoder)
    _ = try decoder.text()
    _ = try decoder.text()
    return try decoder.text()
  }

  static func row(_ bytes: [UInt8]) throws(CorruptDataError) -> VectorRow {
    var decoder = BinaryDecoder(bytes)
    try checkVersion(&decoder)
    let index = try decoder.text()
    let namespace = try decoder.text()
    let id = try decoder.text()
    let values = values(try decoder.data())
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
    return VectorRow(
      index: index,
      namespace: namespace,
      record: VectorRecord(id: id, values: values, metadata: metadata)
    )
  }

  private static let version: UInt8 = 1
  private static let descriptionVersion: UInt8 = 2

  @discardableResult
  private static func checkVersion(
    _ decoder: inout BinaryDecoder,
    upTo newest: UInt8 = version
  ) throws(CorruptDataError) -> UInt8 {
    let found = try decoder.byte()
    guard (1...newest).contains(found) else {
      throw CorruptDataError("unknown vector row version \(found)")
    }
    return found
  }
}
