public import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Makes copies of the whole database, so that a migration can be taken back.
public protocol DatabaseBackup: Sendable {
  /// Copies the database and returns the place of the copy.
  ///
  /// Throws `ServiceError` when there is no copy; nothing may be migrated then.
  func backUp(named name: String) async throws -> String
}

/// How backups are made.
public enum BackupSettings: Sendable, Hashable {
  /// An emulator exports itself; a relative directory lies below its own data.
  case emulator(endpoint: String, project: String, directory: String)
  /// Somebody has made a backup in this place.
  case made(location: String)
  /// No way to make a backup is known.
  case none

  /// Reads `FIRESTORE_EMULATOR_HOST`, else `PSST_BACKUP_LOCATION`, the place of a manual copy.
  init(environment: [String: String]) {
    let project = environment["GCLOUD_PROJECT"] ?? environment["GOOGLE_CLOUD_PROJECT"]
    if let host = environment["FIRESTORE_EMULATOR_HOST"], let project {
      self = .emulator(
        endpoint: host.contains("://") ? host : "http://\(host)",
        project: project,
        directory: environment["PSST_BACKUP_DIRECTORY"] ?? "backups"
      )
    } else if let location = environment["PSST_BACKUP_LOCATION"] {
      self = .made(location: location)
    } else {
      self = .none
    }
  }

  /// Makes the backups that the settings describe.
  func backup(over http: any HTTPTransport) -> any DatabaseBackup {
    switch self {
    case .emulator(let endpoint, let project, let directory):
      EmulatorBackup(endpoint: endpoint, project: project, directory: directory, http: http)
    case .made(let location): MadeBackup(location: location)
    case .none: MissingBackup()
    }
  }
}

/// The export of a Firestore emulator, in a format that every emulator's `import` reads.
public struct EmulatorBackup: DatabaseBackup {
  private let endpoint: String
  private let project: String
  private let directory: String
  private let call: ServiceCall

  /// The time-out; an export takes a minute for millions of documents.
  private static let timeout: Duration = .seconds(900)

  /// Backups of the emulator at an address such as `http://127.0.0.1:8080`.
  public init(endpoint: String, project: String, directory: String, http: any HTTPTransport) {
    self.endpoint = endpoint
    self.project = project
    self.directory = directory
    call = ServiceCall(service: "the export of the Firestore emulator", http: http)
  }

  /// Exports all documents into a folder of this name.
  public func backUp(named name: String) async throws -> String {
    let request = OutboundRequest(
      method: "POST",
      url: OutboundURL.make(base: endpoint, path: ["emulator", "v1", "projects", project])
        + ":export",
      headers: ["Authorization": "Bearer owner", "Content-Type": "application/json"],
      body: Array(
        try JSONEncoder().encode(
          Export(
            database: "projects/\(project)/databases/(default)",
            export_directory: directory,
            export_name: name
          )
        )
      ),
      timeout: Self.timeout
    )
    let reply = try await call.send(request, as: Reply.self)
    return reply.exportPath ?? "\(directory)/\(name)"
  }

  private struct Export: Encodable {
    var database: String
    var export_directory: String
    var export_name: String
  }

  private struct Reply: Decodable {
    var exportPath: String?
  }
}

/// A copy that somebody has already made, such as a managed export of Cloud Firestore.
struct MadeBackup: DatabaseBackup {
  let location: String

  func backUp(named name: String) async throws -> String { location }
}

/// No copy can be made, so nothing can be migrated.
struct MissingBackup: DatabaseBackup {
  func backUp(named name: String) async throws -> String {
    throw ServiceError(
      .misconfigured,
      "there is no backup. Make a managed export, with `gcloud firestore export gs://BUCKET`, and "
        + "set PSST_BACKUP_LOCATION to where it lies"
    )
  }
}
