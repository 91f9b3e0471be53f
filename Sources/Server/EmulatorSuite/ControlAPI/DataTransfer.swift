import DataExport
import DocumentModel
import Foundation
import HTTPSupport
import HTTPTypes
import Invocation
import Logging
import NIOCore
import RuntimeSupport

/// The exports and imports that clients ask the hub for.
struct DataTransfer: Sendable {
  let project: String
  let exporter: DataExporter
  let importer: DataImporter
  let logger: Logger

  /// `POST /_admin/export`, as Firebase's tools send it; replaces an earlier export there.
  func exportForFirebase(_ request: Request) async throws -> Response {
    // No page of any origin may use this; Firebase's hub answers the same.
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

  /// `POST /hearth/v1/export`.
  func export(_ request: Request) async throws -> Response {
    let body: ExportOrder = try await decode(request, as: #"{"path": "/absolute/path"}"#)
    return try .json(encoding: try await export(to: body.path, replaces: body.force ?? false))
  }

  /// `POST /hearth/v1/import`.
  func `import`(_ request: Request) async throws -> Response {
    let body: ImportOrder = try await decode(request, as: #"{"path": "/absolute/path"}"#)
    try checkAbsolute(body.path)
    let summary = try await importer.import(
      body.path,
      .init(firesTriggers: body.fireTriggers ?? false, replaces: body.replace ?? false)
    )
    logger.notice(
      "Data imported",
      metadata: [
        "import.path": "\(summary.path)", "import.documents": "\(summary.documents)",
        "import.vectors": "\(summary.vectors)",
      ]
    )
    return try .json(encoding: TransferSummary(summary))
  }

  /// Exports everything that the suite holds for its project.
  func export(to path: String, replaces: Bool) async throws -> TransferSummary {
    try checkAbsolute(path)
    let summary = try await exporter.exportAll(of: project, to: path, replaces: replaces)
    logger.notice(
      "Data exported",
      metadata: [
        "export.path": "\(summary.path)", "export.documents": "\(summary.documents)",
        "export.vectors": "\(summary.vectors)",
      ]
    )
    return TransferSummary(summary)
  }

  private func checkAbsolute(_ path: String) throws {
    guard path.hasPrefix("/"), !path.utf8.contains(0) else {
      throw StatusError.invalidArgument("\"\(path)\" is no absolute path.")
    }
  }

  private func decode<Body: Decodable>(
    _ request: Request,
    as example: String
  ) async throws -> Body {
    let body = try await request.wholeBody(upTo: Self.bodyBytesMax)
    do {
      return try JSONDecoder().decode(Body.self, from: Data(body.readableBytesView))
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
      vectors: summary.vectors
    )
  }

  init(_ summary: DataImporter.Summary) {
    self.init(
      path: summary.path,
      documents: summary.documents,
      changedDocuments: summary.changedDocuments,
      vectors: summary.vectors
    )
  }
}
