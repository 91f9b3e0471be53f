import JSONText
import StatusCodes
import VectorIndex

/// The encoding of a vector as one line, with the names of its index and namespace.
///
/// It has the JSON form of the vector API.
enum VectorLine {
  /// The maximum size of a line: enough for 20,000 dimensions and 40 KB of metadata in JSON.
  static let bytesMax = 4 << 20

  /// Returns the line without its line feed; equal vectors have equal lines.
  static func bytes(_ row: VectorRow) -> [UInt8] {
    let line: JSONValue = [
      "index": .string(row.index), "namespace": .string(row.namespace),
      "id": .string(row.record.id), "values": .floats(row.record.values),
      "metadata": .object(row.record.metadata.mapValues(\.json)),
    ]
    return line.bytes
  }

  /// Decodes a line; throws `INVALID_ARGUMENT` if it is not a vector.
  static func row(_ line: ArraySlice<UInt8>) throws(StatusError) -> VectorRow {
    // Text that is no JSON at all gets the same error.
    guard let json = try? JSONValue.parse(line), let row = row(of: json) else {
      throw .invalidArgument("no vector with index, namespace, id, values and metadata")
    }
    return row
  }

  private static func row(of json: JSONValue) -> VectorRow? {
    guard case .object(let members) = json,
      case .string(let index)? = members["index"],
      case .string(let namespace)? = members["namespace"],
      case .string(let id)? = members["id"],
      let values = members["values"]?.floats,
      case .object(let metadata)? = members["metadata"]
    else { return nil }
    var record = VectorRecord(id: id, values: values)
    for (name, json) in metadata {
      guard let value = MetadataValue(json) else { return nil }
      record.metadata[name] = value
    }
    return VectorRow(index: index, namespace: namespace, record: record)
  }
}
