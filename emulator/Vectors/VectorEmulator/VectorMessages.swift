import RuntimeSupport
import VectorIndex

/// The JSON of Pinecone's REST API, 2025-10: the control plane in snake case, the data plane in
/// camel case.
enum VectorMessages {
  struct CreateIndex: Decodable {
    var name: String
    var dimension: Int
    var metric: VectorIndexDescription.Metric?
    var tags: [String: String]?
    var deletion_protection: Protection?
  }

  struct ConfigureIndex: Decodable {
    var tags: [String: String]?
    var deletion_protection: Protection?
  }

  enum Protection: String, Codable {
    case enabled, disabled
  }

  struct Index: Encodable {
    struct Status: Encodable {
      var ready = true
      var state = "Ready"
    }
    struct Spec: Encodable {
      struct Serverless: Encodable {
        var cloud = "aws"
        var region = "us-east-1"
      }
      var serverless = Serverless()
    }
    var name: String
    var dimension: Int
    var metric: VectorIndexDescription.Metric
    var host: String
    var status = Status()
    var spec = Spec()
    var vector_type = "dense"
    var deletion_protection: Protection
    var tags: [String: String]

    init(_ description: VectorIndexDescription, host: String) {
      name = description.name
      dimension = description.dimension
      metric = description.metric
      self.host = host
      deletion_protection = description.isProtected ? .enabled : .disabled
      tags = description.tags
    }
  }

  struct IndexList: Encodable {
    var indexes: [Index]
  }

  struct Vector: Codable {
    var id: String
    var values: [Float]?
    var metadata: [String: MetadataValue]?
  }

  struct Upsert: Decodable {
    var vectors: [Vector]
    var namespace: String?
  }

  struct UpsertReply: Encodable {
    var upsertedCount: Int
  }

  struct Query: Decodable {
    var topK: Int
    var vector: [Float]?
    var id: String?
    var filter: FilterObject?
    var namespace: String?
    var includeValues: Bool?
    var includeMetadata: Bool?
  }

  struct QueryReply: Encodable {
    struct Match: Encodable {
      var id: String
      var score: Float
      var values: [Float]?
      var metadata: [String: MetadataValue]?
    }
    var matches: [Match]
    var namespace: String
    var usage = Usage()
  }

  struct Usage: Encodable {
    var readUnits = 1
  }

  struct FetchReply: Encodable {
    var vectors: [String: Vector]
    var namespace: String
    var usage = Usage()
  }

  struct Update: Decodable {
    var id: String
    var values: [Float]?
    var setMetadata: [String: MetadataValue]?
    var namespace: String?
  }

  struct Delete: Decodable {
    var ids: [String]?
    var deleteAll: Bool?
    var filter: FilterObject?
    var namespace: String?
  }

  struct ListReply: Encodable {
    struct ID: Encodable { var id: String }
    struct Page: Encodable { var next: String }
    var vectors: [ID]
    var pagination: Page?
    var namespace: String
    var usage = Usage()
  }

  struct Stats: Encodable {
    struct Count: Encodable { var vectorCount: Int }
    var namespaces: [String: Count]
    var dimension: Int
    var indexFullness = 0
    var totalVectorCount: Int
    var metric: VectorIndexDescription.Metric
    var vectorType = "dense"
  }

  struct Empty: Encodable {}
}

extension MetadataValue: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // The four types exclude one another, so the first that decodes is the one that was sent.
    if let flag = try? container.decode(Bool.self) {
      self = .boolean(flag)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .string(text)
    } else if let texts = try? container.decode([String].self) {
      self = .strings(texts)
    } else {
      let key = decoder.codingPath.last?.stringValue ?? ""
      throw StatusError.invalidArgument(
        "Metadata value of \"\(key)\" must be a string, number, boolean or list of strings."
      )
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .string(let text): try container.encode(text)
    case .number(let number): try container.encode(number)
    case .boolean(let flag): try container.encode(flag)
    case .strings(let texts): try container.encode(texts)
    }
  }
}
