import DocumentModel
import Events
import FirestoreProtos
import FirestoreWire
import FunctionsRuntime
import HTTPMessages
import HTTPTypes
import Identity
import Invocation
import Logging
import NIOCore
import SwiftProtobuf
import TestSupport

/// An app's host without sockets, and its log.
struct HostHarness {
  let host: FunctionHost
  let log = LogCapture()

  init(
    mode: CredentialReader.Mode = .emulator,
    defaults: GlobalOptions = GlobalOptions(),
    @FunctionsBuilder _ functions: () -> [FunctionDefinition]
  ) throws {
    host = try FunctionHost(
      app: FunctionsApp(defaults: defaults, functions),
      credentials: CredentialReader(mode: mode),
      makeLogger: { [log] _ in log.logger() }
    )
  }

  struct Reply: Equatable {
    var status: Int
    var body: String
    var headers: HTTPFields
  }

  /// Posts JSON to a callable; nil headers are omitted.
  func call(
    _ name: String,
    _ json: String,
    method: HTTPRequest.Method = .post,
    contentType: String? = "application/json",
    authorization: String? = nil,
    headers: HTTPFields = [:]
  ) async throws -> Reply {
    var head = HTTPRequest(
      method: method,
      scheme: "http",
      authority: "localhost",
      path: "/\(name)",
      headerFields: headers
    )
    head.headerFields[.contentType] = contentType
    head.headerFields[.authorization] = authorization
    return try await send(head, ByteBuffer(string: json))
  }

  func send(_ head: HTTPRequest, _ body: ByteBuffer) async throws -> Reply {
    let reply = await host.respond(to: head, body: body)
    let bytes = try await reply.body.collect(upTo: 1 << 24)
    return Reply(
      status: reply.head.status.code,
      body: String(buffer: bytes),
      headers: reply.head.headerFields
    )
  }

  /// Delivers a change to a function, as trigger delivery does.
  func deliver(
    _ kind: ChangeKind,
    to name: String,
    before: MapValue? = nil,
    after: MapValue? = nil,
    path: String = "chats/c1/messages/m1",
    change: (inout HTTPRequest) -> Void = { _ in },
    body: [UInt8]? = nil
  ) async throws -> Reply {
    let documentName = DocumentName(
      database: DatabaseName(project: "demo-test"),
      path: ResourcePath(slashSeparated: path)
    )
    func document(_ fields: MapValue) -> FirestoreDocument {
      FirestoreDocument(
        name: documentName,
        fields: fields,
        createTime: Timestamp(microseconds: 1),
        updateTime: Timestamp(microseconds: 2)
      )
    }
    let data = WireFormat.eventData(
      for: DocumentChange(
        name: documentName,
        before: before.map(document),
        after: after.map(document)
      )
    )
    var head = HTTPRequest(method: .post, scheme: "http", authority: "localhost", path: "/\(name)")
    head.headerFields[.contentType] = "application/protobuf"
    head.headerFields[fieldName("ce-specversion")] = "1.0"
    head.headerFields[fieldName("ce-id")] = "event-1"
    head.headerFields[fieldName("ce-source")] = "//firestore.googleapis.com/x"
    head.headerFields[fieldName("ce-type")] = DocumentEventType(kind).name
    head.headerFields[fieldName("ce-time")] = "2026-07-01T12:00:00Z"
    head.headerFields[InvocationRequest.idHeader] = "invocation-1"
    change(&head)
    let bytes: [UInt8] = try body ?? data.serializedBytes()
    return try await send(head, ByteBuffer(bytes: bytes))
  }
}
