public import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A service that makes a backup of the database, so that a migration can be undone.
public protocol DatabaseBackup: Sendable {
  /// Makes a backup of the database and returns its location.
  ///
  /// Throws `ServiceError` if there is no backup. Nothing may be migrated then.
  func backUp(named name: String) async throws -> String
}

/// The method of making backups.
public enum BackupSettings: Sendable, Hashable {
  /// An export of the emulator; a relative directory is below the emulator's data directory.
  case emulator(endpoint: String, project: String, directory: String)
  /// A backup that was already made, at the given location.
  case made(location: String)
  /// No method is configured, so migrations are refused.
  case none

  /// Reads `FIRESTORE_EMULATOR_HOST`, or else `PSST_BACKUP_LOCATION` of a manual backup.
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

  /// Returns the service that makes backups according to the settings.
  func backup(over http: any HTTPTransport) -> any DatabaseBackup {
    switch self {
    case .emulator(let endpoint, let project, let directory):
      EmulatorBackup(endpoint: endpoint, project: project, directory: directory, http: http)
    case .made(let location): MadeBackup(location: location)
    case .none: MissingBackup()
    }
  }
}

/// A backup by a Firestore emulator's export, in the format that every emulator imports.
public struct EmulatorBackup: DatabaseBackup {
  private let endpoint: String
  private let project: String
  private let directory: String
  private let call: ServiceCall

  /// The timeout; an export of millions of documents takes a minute.
  private static let timeout: Duration = .seconds(900)

  /// Creates a backup service for the emulator at an address such as `http://127.0.0.1:8080`.
  public init(endpoint: String, project: String, directory: String, http: any HTTPTransport) {
    self.endpoint = endpoint
    self.project = project
    self.directory = directory
    call = ServiceCall(service: "the export of the Firestore emulator", http: http)
  }

  /// Exports all documents into a folder with the given name and returns its path.
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

/// A backup that was already made, such as a managed export of Cloud Firestore.
struct MadeBackup: DatabaseBackup {
  let location: String

  func backUp(named name: String) async throws -> String { location }
}

/// A missing backup, without which nothing can be migrated.
struct MissingBackup: DatabaseBackup {
  func backUp(named name: String) async throws -> String {
    throw ServiceError(
      .misconfigured,
      "there is no backup. Make a managed export, with `gcloud firestore export gs://BUCKET`, and "
        + "set PSST_BACKUP_LOCATION to where it lies"
    )
  }
}
