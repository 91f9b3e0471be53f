import JSONText
import Foundation
import StatusCodes
import VectorIndex

/// The encoding of a vector as one line, with the names of its index and namespace.
///
/// It has the JSON form of the vector API.
struct VectorLine: Encodable {
  /// The maximum size of a line: enough for 20,000 dimensions and 40 KB of metadata in JSON.
  static let bytesMax = 4 << 20

  var index: String
  var namespace: String
  var id: String
  var values: [Float]
  var metadata: [String: Metadata]

  /// A metadata value in plain JSON.
  enum Metadata: Encodable {
    case boolean(Bool)
    case number(Double)
    case string(String)
    case strings([String])

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .boolean(let flag): try container.encode(flag)
      case .number(let number): try container.encode(number)
      case .string(let text): try container.encode(text)
      case .strings(let texts): try container.encode(texts)
      }
    }
  }

  /// Returns the line without its line feed; equal vectors have equal lines.
  static func bytes(_ row: VectorRow) throws -> Data {
    let encoder = JSONEncoder.stable()
    return try encoder.encode(VectorLine(row))
  }

  /// Decodes a line; throws `INVALID_ARGUMENT` if it is not a vector.
  static func row(_ line: ArraySlice<UInt8>) throws(StatusError) -> VectorRow {
    // Text that is no JSON at all gets the same error.
    guard case .object(let members)? = try? JSONTree.parse(Array(line)),
      let row = row(of: Dictionary(members) { _, last in last })
    else { throw .invalidArgument("no vector with index, namespace, id, values and metadata") }
    return row
  }

  private static func row(of members: [String: JSONTree]) -> VectorRow? {
    guard case .string(let index)? = members["index"],
      case .string(let namespace)? = members["namespace"],
      case .string(let id)? = members["id"],
      case .array(let values)? = members["values"],
      case .object(let metadata)? = members["metadata"]
    else { return nil }
    var record = VectorRecord(id: id, values: [])
    for value in values {
      guard case .number(let number) = value else { return nil }
      record.values.append(Float(number.double))
    }
    for (name, value) in metadata {
      guard let value = metadataValue(value) else { return nil }
      record.metadata[name] = value
    }
    return VectorRow(index: index, namespace: namespace, record: record)
  }

  private static func metadataValue(_ json: JSONTree) -> MetadataValue? {
    switch json {
    case .boolean(let flag): return .boolean(flag)
    case .number(let number): return .number(number.double)
    case .string(let text): return .string(text)
    case .array(let elements):
      var texts: [String] = []
      for element in elements {
        guard case .string(let text) = element else { return nil }
        texts.append(text)
      }
      return .strings(texts)
    case .null, .object: return nil
    }
  }

  private init(_ row: VectorRow) {
    index = row.index
    namespace = row.namespace
    id = row.record.id
    values = row.record.values
    metadata = row.record.metadata.mapValues { value in
      switch value {
      case .string(let text): .string(text)
      case .number(let number): .number(number)
      case .boolean(let flag): .boolean(flag)
      case .strings(let texts): .strings(texts)
      }
    }
  }
}
