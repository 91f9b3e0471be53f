package import DocumentModel
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identity
import JSONText
import NIOCore
import StatusCodes

/// A request to `POST /emulator/v1/projects/P:export`.
package struct ExportRequest: Sendable, Hashable {
  package var database: DatabaseName
  /// An absolute path, or a path without `..` relative to a folder of the suite.
  package var directory: String
  /// The name of the folder in `directory` to which the export is written.
  package var name: String
}

extension FirestoreService {
  /// A function that writes a database to disk and returns the absolute path of the folder.
  package typealias Exporter = @Sendable (ExportRequest) async throws -> String

  /// Refuses an export to all but the administrator's programs on this machine.
  ///
  /// It writes to any folder. A request with an `Origin` comes from a web page.
  func checkExport(_ request: Request, _ context: HTTPContext?, _ auth: AuthContext) throws {
    guard auth == .admin else {
      throw StatusError(.permissionDenied, "Missing or insufficient permissions.")
    }
    guard let context, context.isFromThisMachine, request.headers[.origin] == nil else {
      throw StatusError(
        .permissionDenied,
        "An export writes files, so only a program on this machine may ask Firestore's port for "
          + "one. From elsewhere, the hub takes `POST /_admin/export` with the token of the suite."
      )
    }
  }

  /// Exports a database.
  func export(project: String, _ body: ByteBuffer) async throws -> Response {
    guard let exporter else {
      throw StatusError(.unimplemented, "Nothing here can export documents.")
    }
    let path = try await exporter(try exportRequest(project: project, body))
    struct Reply: Encodable {
      var exportPath: String
    }
    return try .json(encoding: Reply(exportPath: path))
  }

  private func exportRequest(project: String, _ body: ByteBuffer) throws -> ExportRequest {
    // A decoding error is always the client's fault.
    guard let sent = try? ExportBody(decodingJSON: body.readableBytesView)
    else {
      throw StatusError.invalidArgument(
        "The body must be {\"database\": \"projects/\(project)/databases/(default)\", "
          + "\"export_directory\": \"…\", \"export_name\": \"firestore_export\"}."
      )
    }
    guard let database = DatabaseName(sent.database), database.project == project else {
      throw StatusError.invalidArgument(
        "\"database\" must be the full name of one of the project's databases, "
          + "such as projects/\(project)/databases/(default)."
      )
    }
    let name = sent.name ?? "firestore_export"
    guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(UInt8(ascii: "/")),
      !name.utf8.contains(0)
    else {
      throw StatusError.invalidArgument("\"export_name\" must be the name of one folder.")
    }
    let directory = sent.directory
    guard !directory.utf8.contains(0),
      directory.hasPrefix("/") || !directory.split(separator: "/").contains("..")
    else {
      throw StatusError.invalidArgument(
        "\"export_directory\" must be an absolute path, or a relative one without \"..\"."
      )
    }
    return ExportRequest(database: database, directory: directory, name: name)
  }
}

private struct ExportBody: Decodable {
  var database: String
  var directory: String
  var name: String?

  enum CodingKeys: String, CodingKey {
    case database
    case directory = "export_directory"
    case name = "export_name"
  }
}
