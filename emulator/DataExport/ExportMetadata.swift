/// The contents of `firebase-export-metadata.json`: the services in an export and their folders.
struct ExportMetadata: Codable, Sendable, Hashable {
  static let fileName = "firebase-export-metadata.json"

  /// The version of the program that wrote the export.
  var version: String
  var firestore: Part?
  var auth: Folder?
  var database: Folder?
  var vectors: Part?

  /// The names of all members of the metadata.
  struct Names: Decodable {
    /// The parts of emulators that Hearth does not have, such as `storage`, sorted.
    var unknown: [String]

    init(from decoder: any Decoder) throws {
      let members = try decoder.container(keyedBy: Name.self).allKeys.map(\.stringValue)
      let known = Set(CodingKeys.allCases.map(\.stringValue))
      unknown = members.filter { !known.contains($0) }.sorted()
    }

    private struct Name: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }

      init?(stringValue: String) { self.stringValue = stringValue }

      init?(intValue: Int) { nil }
    }
  }

  private enum CodingKeys: String, CodingKey, CaseIterable {
    case version, firestore, auth, database, vectors
  }

  /// The folder with the users or the Realtime Databases, relative to the folder of the export.
  struct Folder: Codable, Sendable, Hashable {
    var version: String
    var path: String
  }

  /// The location of one service's data, relative to the folder of the export.
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
  /// The read time of the export; all documents have their state of this time.
  var readTime: String
  var databases: [Database]

  /// One database with its files, which contain its documents in order.
  struct Database: Codable, Sendable, Hashable {
    /// The full name: `projects/P/databases/D`.
    var name: String
    var documents: Int
    var files: [ExportedFile]
  }
}

/// The metadata of exported vectors: `NAME.overall_export_metadata`.
struct VectorMetadata: Codable, Sendable, Hashable {
  static let format = "hearth-vectors-export"
  /// The current version; the first version lacked the fields, places and namespaces of indexes.
  static let currentVersion = 2

  var format = Self.format
  var version = Self.currentVersion
  var exportTime: String
  var indexes: [Index]
  var vectors: Int
  var files: [ExportedFile]

  /// An index as its creator declared it.
  struct Index: Codable, Sendable, Hashable {
    var name: String
    var dimension: Int
    var metric: String
    var tags: [String: String]
    var isProtected: Bool
    /// The name of the vector field.
    ///
    /// Version 1 has neither this member nor the following ones.
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
