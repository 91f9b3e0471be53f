import DataExport
import DatabaseTree
import DocumentModel
import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import Logging
import NIOCore
import StatusCodes

/// The handler of the hub's export and import requests.
struct DataTransfer: Sendable {
  let project: String
  let exporter: DataExporter
  let importer: DataImporter
  let logger: Logger

  /// Handles `POST /_admin/export` from Firebase's tools; replaces an existing export.
  func exportForFirebase(_ request: Request) async throws -> Response {
    // No web page may use this, whatever its origin; the message equals that of Firebase's hub.
    guard request.headers[.origin] == nil else {
      throw StatusError(.permissionDenied, "Export cannot be triggered by external callers.")
    }
    struct Body: Decodable {
      var path: String
      var initiatedBy: String?
    }
    let body: Body = try await decode(request, as: #"{"path": "/absolute/path"}"#)
    _ = try await export(to: body.path, replaces: true)
    return .json(#"{"message":"OK"}"#)
  }

  /// Handles `POST /hearth/v1/export`.
  func export(_ request: Request) async throws -> Response {
    let body: ExportOrder = try await decode(request, as: #"{"path": "/absolute/path"}"#)
    return try .json(
      encoding: try await export(
        to: body.path,
        replaces: body.force ?? false,
        form: try form(body.format)
      )
    )
  }

  /// Handles `POST /hearth/v1/import`.
  func `import`(_ request: Request) async throws -> Response {
    let body: ImportOrder = try await decode(request, as: #"{"path": "/absolute/path"}"#)
    try checkAbsolute(body.path)
    let summary = try await importer.import(
      body.path,
      .init(
        firesTriggers: body.fireTriggers ?? false,
        replaces: body.replace ?? false,
        instance: body.instance.map {
          $0.isEmpty ? RealtimeDatabase.defaultInstance(of: project) : $0
        }
      )
    )
    logger.notice(
      "Data imported",
      metadata: [
        "import.path": "\(summary.path)", "import.documents": "\(summary.documents)",
        "import.users": "\(summary.users)", "import.instances": "\(summary.instances)",
        "import.vectors": "\(summary.vectors)",
      ]
    )
    return try .json(encoding: TransferSummary(summary))
  }

  /// Handles `GET /hearth/v1/import`: the progress of the import that runs.
  func progress() throws -> Response {
    try .json(encoding: TransferProgress(text: importer.progress.part?.description))
  }

  private func form(_ name: String?) throws -> DataExporter.Form {
    guard let name else { return .hearth }
    guard let form = DataExporter.Form(rawValue: name) else {
      let names = DataExporter.Form.allCases.map(\.rawValue).joined(separator: ", ")
      throw StatusError.invalidArgument("\"\(name)\" is not a format; the formats are \(names).")
    }
    return form
  }

  /// Exports all data of the suite's project.
  func export(
    to path: String,
    replaces: Bool,
    form: DataExporter.Form = .hearth
  ) async throws -> TransferSummary {
    try checkAbsolute(path)
    let summary = try await exporter.exportAll(
      of: project,
      to: path,
      replaces: replaces,
      form: form
    )
    logger.notice(
      "Data exported",
      metadata: [
        "export.path": "\(summary.path)", "export.documents": "\(summary.documents)",
        "export.users": "\(summary.users)", "export.instances": "\(summary.instances)",
        "export.vectors": "\(summary.vectors)",
      ]
    )
    return TransferSummary(summary)
  }

  private func checkAbsolute(_ path: String) throws {
    guard path.hasPrefix("/"), !path.utf8.contains(0) else {
      throw StatusError.invalidArgument("\"\(path)\" is not an absolute path.")
    }
  }

  private func decode<Body: Decodable>(
    _ request: Request,
    as example: String
  ) async throws -> Body {
    let body = try await request.wholeBody(upTo: Self.bodyBytesMax)
    do {
      return try Body(decodingJSON: body.readableBytesView)
    } catch {
      throw StatusError.invalidArgument("The body must be JSON like \(example).")
    }
  }

  private static let bodyBytesMax = 64 << 10
}

extension TransferSummary {
  init(_ summary: DataExporter.Summary) {
    self.init(
      path: summary.path,
      documents: summary.documents,
      changedDocuments: summary.documents,
      users: summary.users,
      instances: summary.instances == 0 ? nil : summary.instances,
      vectors: summary.vectors
    )
  }

  init(_ summary: DataImporter.Summary) {
    self.init(
      path: summary.path,
      documents: summary.documents,
      changedDocuments: summary.changedDocuments,
      users: summary.users,
      instances: summary.instances == 0 ? nil : summary.instances,
      vectors: summary.vectors,
      skippedParts: summary.skippedParts.isEmpty ? nil : summary.skippedParts
    )
  }
}
