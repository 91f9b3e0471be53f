package import AuthAccounts
package import DatabaseTree
import JSONText
package import DocumentModel
package import DocumentStore
import FirestoreWire
import Foundation
import StatusCodes
import SwiftProtobuf
package import VectorIndex

/// The exporter of a suite's data to folders that `DataImporter` reads.
package struct DataExporter: Sendable {
  /// The size at which a file is closed, so that no tool has to open a huge file.
  static let fileBytesMax = 256 << 20
  /// The name of the documents' folder in an export of all data.
  static let documentsFolder = "firestore_export"
  static let vectorsFolder = "vectors_export"

  let store: DocumentDatabase
  let accounts: AccountStore
  let database: RealtimeDatabase
  let vectors: VectorCatalog
  let version: String
  let fileBytesMax: Int

  /// Creates an exporter for a suite's data; `version` is the program's version.
  package init(
    store: DocumentDatabase,
    accounts: AccountStore,
    database: RealtimeDatabase,
    vectors: VectorCatalog,
    version: String,
    fileBytesMax: Int = Self.fileBytesMax
  ) {
    self.store = store
    self.accounts = accounts
    self.database = database
    self.vectors = vectors
    self.version = version
    self.fileBytesMax = fileBytesMax
  }

  /// The forms in which documents are exported.
  package enum Form: String, Sendable, Codable, CaseIterable {
    /// One document per line, in Firestore's JSON.
    case hearth
    /// The form of the official emulator, which it can import.
    case firebase
  }

  /// The contents and the location of an export.
  package struct Summary: Codable, Sendable, Hashable {
    /// The absolute path of the export's folder.
    package var path: String
    package var documents: Int
    package var users: Int
    /// The number of instances of the Realtime Database.
    package var instances: Int
    package var vectors: Int
  }

  /// Writes the documents of one database to a folder; an earlier export in the folder is replaced.
  ///
  /// Throws `FAILED_PRECONDITION` if the folder contains anything but an export.
  package func export(_ database: DatabaseName, to path: String) async throws -> Summary {
    try await withTaskExecutorPreference(DiskExecutor.shared) {
      let destination = try ExportDestination(
        path: path,
        replaces: true,
        isExport: Self.isServiceExport
      )
      return try await Self.write(to: destination) {
        let name = URL(filePath: destination.path).lastPathComponent
        let time = try await store.readTime()
        let count = try await write([database], at: time, to: destination.workPath, name: name)
        try destination.publish(folders: [])
        return Summary(path: destination.path, documents: count, users: 0, instances: 0, vectors: 0)
      }
    }
  }

  /// Writes all documents and users of a project and all vectors of one moment to a folder.
  ///
  /// The trees of the Realtime Database have the state of the moment at which they are written.
  ///
  /// If `replaces` is true, an earlier export in the folder is replaced; otherwise the call throws
  /// `ALREADY_EXISTS`. A folder that contains anything but an export is always refused. The form
  /// `firebase` holds one database only, so a project with documents in another one is refused.
  package func exportAll(
    of project: String,
    to path: String,
    replaces: Bool,
    form: Form = .hearth
  ) async throws -> Summary {
    try await withTaskExecutorPreference(DiskExecutor.shared) {
      let destination = try ExportDestination(
        path: path,
        replaces: replaces,
        isExport: Self.isWholeExport
      )
      return try await Self.write(to: destination) {
        let documentsPath = try destination.makeFolder(Self.documentsFolder)
        let (moment, time) = try await moment()
        let databases = try await store.databases(of: project)
        let main = DatabaseName(project: project)
        let documents: Int
        switch form {
        case .hearth:
          documents = try await write(
            databases.isEmpty ? [main] : databases,
            at: time,
            to: documentsPath,
            name: Self.documentsFolder
          )
        case .firebase:
          if let other = databases.first(where: { $0 != main }) {
            throw StatusError(
              .failedPrecondition,
              "The form of Firebase holds the database (default) only, and there are documents in "
                + "\(other.database); export without --format."
            )
          }
          documents = try await writeOfficial(
            main,
            at: time,
            to: documentsPath,
            name: Self.documentsFolder
          )
        }
        let authPath = try destination.makeFolder(AccountFile.folder)
        let users = try AccountFile.write(moment.accounts, to: authPath)
        let trees = try await DatabaseFiles.write(database, to: destination)
        let vectorsPath = try destination.makeFolder(Self.vectorsFolder)
        let vectors = try writeVectors(
          moment.vectors,
          of: time,
          to: vectorsPath,
          name: Self.vectorsFolder
        )
        let metadata = ExportMetadata(
          version: version,
          firestore: .init(
            version: version,
            path: Self.documentsFolder,
            metadataFile: "\(Self.documentsFolder)/\(Self.metadataName(Self.documentsFolder))"
          ),
          auth: .init(version: version, path: AccountFile.folder),
          database: trees.map { _ in .init(version: version, path: DatabaseFiles.folder) },
          vectors: .init(
            version: version,
            path: Self.vectorsFolder,
            metadataFile: "\(Self.vectorsFolder)/\(Self.metadataName(Self.vectorsFolder))"
          )
        )
        try Self.write(metadata, to: "\(destination.workPath)/\(ExportMetadata.fileName)")
        let inner = form == .firebase ? OfficialExportWriter.folders(in: documentsPath) : []
        let folders = [trees?.folder].compactMap(\.self)
        try destination.publish(folders: inner + [documentsPath, authPath, vectorsPath] + folders)
        return Summary(
          path: destination.path,
          documents: documents,
          users: users,
          instances: trees?.instances ?? 0,
          vectors: vectors
        )
      }
    }
  }

  // MARK: - Parts

  /// The users and vectors of one moment.
  private struct Moment: Sendable {
    var accounts: AccountSnapshot
    var vectors: VectorView
  }

  /// Takes the users and vectors of one moment; the documents of its time are read page by page.
  private func moment() async throws -> (Moment, Timestamp) {
    try await vectors.withView { vectors in
      let (accounts, time) = try await store.readStorage { try AccountSnapshot($0) }
      return (Moment(accounts: accounts, vectors: vectors), time)
    }
  }

  private func write(
    _ databases: [DatabaseName],
    at time: Timestamp,
    to folder: String,
    name: String
  ) async throws -> Int {
    let lines = ExportLines(folder: folder, kind: "documents", fileBytesMax: fileBytesMax)
    var metadata = DocumentMetadata(readTime: time.description, databases: [])
    for database in databases {
      var next: [UInt8]?
      repeat {
        let page = try await page(of: database, from: next, at: time)
        for document in page.documents { try lines.append(try DocumentLine.bytes(document)) }
        next = page.next
      } while next != nil
      let files = try lines.endFiles()
      metadata.databases.append(
        .init(
          name: database.description,
          documents: files.reduce(0) { $0 + $1.records },
          files: files
        )
      )
    }
    try Self.write(metadata, to: "\(folder)/\(Self.metadataName(name))")
    return metadata.databases.reduce(0) { $0 + $1.documents }
  }

  private func writeOfficial(
    _ database: DatabaseName,
    at time: Timestamp,
    to folder: String,
    name: String
  ) async throws -> Int {
    let writer = try OfficialExportWriter(folder: folder, name: name, fileBytesMax: fileBytesMax)
    var next: [UInt8]?
    repeat {
      let page = try await page(of: database, from: next, at: time)
      for document in page.documents { try writer.append(document) }
      next = page.next
    } while next != nil
    return try writer.finish(from: time, to: time)
  }

  private func page(
    of database: DatabaseName,
    from: [UInt8]?,
    at time: Timestamp
  ) async throws -> (documents: [FirestoreDocument], next: [UInt8]?) {
    try Task.checkCancellation()
    do {
      return try await store.page(of: database, from: from, at: time)
    } catch let error as StatusError where error.statusCode == .failedPrecondition {
      throw StatusError(
        .aborted,
        "While it was exported, the database was cleared or imported into, or more was written than "
          + "is kept of the past; export again."
      )
    }
  }

  private func writeVectors(
    _ view: VectorView,
    of time: Timestamp,
    to folder: String,
    name: String
  ) throws -> Int {
    let lines = ExportLines(folder: folder, kind: "vectors", fileBytesMax: fileBytesMax)
    try view.forEachRow { row in
      try Task.checkCancellation()
      try lines.append(VectorLine.bytes(row))
    }
    let files = try lines.endFiles()
    let metadata = VectorMetadata(
      exportTime: time.description,
      indexes: view.indexes.map { VectorMetadata.Index($0.description, $0.namespaces) },
      vectors: files.reduce(0) { $0 + $1.records },
      files: files
    )
    try Self.write(metadata, to: "\(folder)/\(Self.metadataName(name))")
    return metadata.vectors
  }

  // MARK: - Folders

  private static func write(
    to destination: ExportDestination,
    _ body: () async throws -> Summary
  ) async throws -> Summary {
    do {
      return try await body()
    } catch {
      // The error of the export is the one to report. The next export removes the leftovers.
      try? destination.abandon()
      throw error
    }
  }

  static func metadataName(_ name: String) -> String { name + DocumentMetadata.suffix }

  private static func write(_ metadata: some Encodable, to path: String) throws {
    let file = try ExportFileWriter(path: path)
    try file.append(line: try metadata.jsonBytes(isPretty: true))
    _ = try file.finish()
  }

  /// Indicates whether a folder contains an export of all data and nothing else.
  ///
  /// Parts of emulators that Hearth does not have, such as `storage_export`, are something else,
  /// because a new export could not replace them.
  private static func isWholeExport(_ names: [String]) -> Bool {
    let own = [
      ExportMetadata.fileName, documentsFolder, AccountFile.folder, DatabaseFiles.folder,
      vectorsFolder, ".DS_Store",
    ]
    return names.contains(ExportMetadata.fileName) && names.allSatisfy(own.contains)
  }

  /// Throws if `exportAll` could not replace what is at a path.
  ///
  /// For an export at the end of a suite, which should not come to nothing then.
  package static func check(destination path: String) throws {
    try ExportDestination.check(path, replaces: true, isExport: isWholeExport)
  }

  /// Returns the form of the export at a path; the form `hearth` if there is none.
  package static func form(ofExportAt path: String) -> Form {
    let metadata = "\(path)/\(documentsFolder)/\(metadataName(documentsFolder))"
    return FileManager.default.fileExists(atPath: metadata) && OfficialExport.isMetadata(metadata)
      ? .firebase : .hearth
  }

  /// Indicates whether a folder contains an export of one service and no files of a user.
  ///
  /// The export may be Hearth's own or one of Google's emulator.
  private static func isServiceExport(_ names: [String]) -> Bool {
    names.contains { $0.hasSuffix(DocumentMetadata.suffix) }
      && names.allSatisfy { name in
        name.hasSuffix(DocumentMetadata.suffix) || name.hasSuffix(".jsonl")
          || name == "all_namespaces" || name == ".DS_Store"
      }
  }
}

extension VectorMetadata.Index {
  /// Creates the metadata of an index.
  init(_ description: VectorIndexDescription, _ namespaces: [VectorNamespace]) {
    self.init(
      name: description.name,
      dimension: description.dimension,
      metric: description.metric.rawValue,
      tags: description.tags,
      isProtected: description.isProtected,
      field: description.field,
      cloud: description.cloud,
      region: description.region,
      namespaces: namespaces.map {
        VectorMetadata.Namespace(name: $0.name, filterableFields: $0.filterableFields)
      }
    )
  }
}
