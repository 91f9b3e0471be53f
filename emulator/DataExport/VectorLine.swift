import JSONText
import Foundation
import StatusCodes
import VectorIndex

/// The encoding of a vector as one line, with the names of its index and namespace.
///
/// It has the JSON form of the vector API.
struct VectorLine: Codable {
  /// The maximum size of a line: enough for 20,000 dimensions and 40 KB of metadata in JSON.
  static let bytesMax = 4 << 20

  var index: String
  var namespace: String
  var id: String
  var values: [Float]
  var metadata: [String: Metadata]

  /// A metadata value in plain JSON.
  enum Metadata: Codable {
    case boolean(Bool)
    case number(Double)
    case string(String)
    case strings([String])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let flag = try? container.decode(Bool.self) {
        self = .boolean(flag)
      } else if let number = try? container.decode(Double.self) {
        self = .number(number)
      } else if let text = try? container.decode(String.self) {
        self = .string(text)
      } else {
        self = .strings(try container.decode([String].self))
      }
    }

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
  static func bytes(_ row: VectorPage.Row) throws -> Data {
    let encoder = JSONEncoder.stable()
    return try encoder.encode(VectorLine(row))
  }

  /// Decodes a line; throws `INVALID_ARGUMENT` if it is not a vector.
  static func row(_ line: ArraySlice<UInt8>) throws(StatusError) -> VectorPage.Row {
    do {
      return try JSONDecoder().decode(VectorLine.self, from: Data(line)).row
    } catch {
      throw .invalidArgument("no vector with index, namespace, id, values and metadata")
    }
  }

  private var row: VectorPage.Row {
    VectorPage.Row(
      index: index,
      namespace: namespace,
      record: VectorRecord(
        id: id,
        values: values,
        metadata: metadata.mapValues { value in
          switch value {
          case .string(let text): .string(text)
          case .number(let number): .number(number)
          case .boolean(let flag): .boolean(flag)
          case .strings(let texts): .strings(texts)
          }
        }
      )
    )
  }

  private init(_ row: VectorPage.Row) {
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
