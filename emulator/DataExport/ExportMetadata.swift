/// What `firebase-export-metadata.json` says: which services a folder holds and where.
struct ExportMetadata: Codable, Sendable, Hashable {
  static let fileName = "firebase-export-metadata.json"

  /// The version of the program that wrote the export.
  var version: String
  var firestore: Part?
  var vectors: Part?

  /// Where one service's data are, relative to the folder.
  struct Part: Codable, Sendable, Hashable {
    var version: String
    var path: String
    var metadataFile: String

    enum CodingKeys: String, CodingKey {
      case version, path
      case metadataFile = "metadata_file"
    }
  }
}

/// The metadata of exported documents: `NAME.overall_export_metadata`.
struct DocumentMetadata: Codable, Sendable, Hashable {
  static let format = "hearth-firestore-export"
  static let currentVersion = 1
  static let suffix = ".overall_export_metadata"

  var format = Self.format
  var version = Self.currentVersion
  /// All documents are as they were at this time.
  var readTime: String
  var databases: [Database]

  /// One database with its files, which hold its documents in their order.
  struct Database: Codable, Sendable, Hashable {
    /// `projects/P/databases/D`.
    var name: String
    var documents: Int
    var files: [ExportedFile]
  }
}

/// The metadata of exported vectors: `NAME.overall_export_metadata`.
struct VectorMetadata: Codable, Sendable, Hashable {
  static let format = "hearth-vectors-export"
  /// The first version lacked the fields, places and namespaces of indexes.
  static let currentVersion = 2

  var format = Self.format
  var version = Self.currentVersion
  var exportTime: String
  var indexes: [Index]
  var vectors: Int
  var files: [ExportedFile]

  /// An index as its creator described it.
  struct Index: Codable, Sendable, Hashable {
    var name: String
    var dimension: Int
    var metric: String
    var tags: [String: String]
    var isProtected: Bool
    /// These are absent from the first version.
    var field: String?
    var cloud: String?
    var region: String?
    /// All namespaces, including those without vectors.
    var namespaces: [Namespace]?
  }

  /// A namespace as its creator declared it.
  struct Namespace: Codable, Sendable, Hashable {
    var name: String
    var filterableFields: [String]
  }
}
