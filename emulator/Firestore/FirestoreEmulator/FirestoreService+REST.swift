import DocumentModel
import DocumentStore
import FirestoreProtos
import FirestoreWire
import HTTP2Server
package import HTTPMessages
package import HTTPSupport
import HTTPTypes
import Identity
import InvocationContext
import NIOCore
import StatusCodes
import SwiftProtobuf

extension FirestoreService {
  private static let methodHeader = HTTPField.Name("X-HTTP-Method-Override")
  private static let causeHeader = HTTPField.Name(EventCause.headerName)

  /// Responds to one HTTP request.
  ///
  /// `context` is nil for requests that another service passes on; these may not write files.
  package func respond(to request: Request, _ context: HTTPContext? = nil) async -> Response {
    if let preflight = CORSPolicy.firestore.preflight(request.head) {
      return Response(status: preflight.status, headers: preflight.headerFields)
    }
    var response = await answer(request, context)
    CORSPolicy.firestore.apply(to: &response.head, for: request.head)
    return response
  }

  private func answer(_ request: Request, _ context: HTTPContext?) async -> Response {
    // For clients whose network allows only GET and POST.
    let override = request.method == .post ? Self.methodHeader.flatMap { request.headers[$0] } : nil
    guard let method = override.map({ HTTPRequest.Method($0.uppercased()) }) ?? request.method
    else {
      return .error(.invalidArgument, "The header X-HTTP-Method-Override names no method.")
    }
    guard let route = RESTRoute(method: method, path: request.path) else {
      return .error(
        .notFound,
        "The requested URL was not found on this server: \(method) \(request.path)"
      )
    }
    do {
      return try await answer(route, request, context)
    } catch {
      let reported = publicError(for: error)
      let body = GoogleErrorBody.rest(reported)
      return .json(
        route.isStreamed ? "[\(body)]" : body,
        status: .numbered(reported.statusCode.httpStatus)
      )
    }
  }

  private func answer(
    _ route: RESTRoute,
    _ request: Request,
    _ context: HTTPContext?
  ) async throws -> Response {
    switch route {
    case .liveness:
      return .text("Ok")
    case .channel(let method):
      return await respond(to: request, on: method)
    case .reset(let database):
      try await store.reset(database)
      return .json("{}")
    case .readRules(let scope): return try rulesText(scope)
    case .loadRules(let scope):
      let body = try await request.wholeBody(upTo: Self.rulesBytesMax)
      return try loadRules(scope, body)
    case .coverage(let project, let isPage): return try coverage(project, isPage: isPage)
    case .export(let project):
      let auth = try authenticate(authorization: request.headers[.authorization])
      try checkExport(request, context, auth)
      let body = try await request.wholeBody(upTo: Self.grpcConfiguration.requestBytesMax)
      return try await export(project: project, body)
    default:
      let auth = try authenticate(authorization: request.headers[.authorization])
      let body = try await request.wholeBody(upTo: Self.grpcConfiguration.requestBytesMax)
      let cause = Self.causeHeader.flatMap { request.headers[$0] }
      let trace = request.headers[.traceParent]
      return try await EventCause.with(
        header: CauseSignature.verified(cause),
        traceParent: trace
      ) {
        var parameters = RESTParameters(request.query)
        return try await answer(route, body, &parameters, auth)
      }
    }
  }

  private func answer(
    _ route: RESTRoute,
    _ body: ByteBuffer,
    _ parameters: inout RESTParameters,
    _ auth: AuthContext
  ) async throws -> Response {
    switch route {
    case .liveness, .reset, .export, .channel, .readRules, .loadRules, .coverage:
      // Requests of these routes are handled before the body is read.
      throw StatusError(.internal, "Internal error.")
    case .getDocument(let name):
      let request = try Google_Firestore_V1_GetDocumentRequest(name: name, &parameters)
      return try await one({ try await self.getDocument($0, auth: $1).proto }, request, auth)
    case .listDocuments(let parent, let collectionID):
      let request = try Google_Firestore_V1_ListDocumentsRequest(
        parent: parent,
        collectionID: collectionID,
        &parameters
      )
      return try await one(listDocuments, request, auth)
    case .createDocument(let parent, let collectionID):
      let request = try Google_Firestore_V1_CreateDocumentRequest(
        parent: parent,
        collectionID: collectionID,
        document: try await JSONPayload.message(body, at: "document"),
        &parameters
      )
      return try await one(createDocument, request, auth)
    case .updateDocument(let name):
      let request = try Google_Firestore_V1_UpdateDocumentRequest(
        name: name,
        document: try await JSONPayload.message(body, at: "document"),
        &parameters
      )
      return try await one(updateDocument, request, auth)
    case .deleteDocument(let name):
      let request = try Google_Firestore_V1_DeleteDocumentRequest(name: name, &parameters)
      return try await one(deleteDocument, request, auth)
    case .database(let verb, let name):
      try parameters.finish()
      return try await answer(verb, database: name, body, auth)
    case .parent(let verb, let name):
      try parameters.finish()
      return try await answer(verb, parent: name, body, auth)
    }
  }

  private func answer(
    _ verb: RESTRoute.DatabaseVerb,
    database: String,
    _ body: ByteBuffer,
    _ auth: AuthContext
  ) async throws -> Response {
    switch verb {
    case .batchGet:
      try await many({ try await self.batchGetDocuments($0, auth: $1).protos }, body, auth) {
        $0.database = database
      }
    case .beginTransaction: try await one(beginTransaction, body, auth) { $0.database = database }
    case .commit: try await one(commit, body, auth) { $0.database = database }
    case .rollback: try await one(rollback, body, auth) { $0.database = database }
    case .batchWrite: try await one(batchWrite, body, auth) { $0.database = database }
    case .executePipeline: throw Self.pipelinesUnimplemented
    }
  }

  private func answer(
    _ verb: RESTRoute.ParentVerb,
    parent: String,
    _ body: ByteBuffer,
    _ auth: AuthContext
  ) async throws -> Response {
    switch verb {
    case .runQuery:
      try await many({ try await self.runQuery($0, auth: $1).protos }, body, auth) {
        $0.parent = parent
      }
    case .runAggregationQuery:
      try await many(runAggregationQuery, body, auth) { $0.parent = parent }
    case .partitionQuery: try await one(partitionQuery, body, auth) { $0.parent = parent }
    case .listCollectionIds: try await one(listCollectionIDs, body, auth) { $0.parent = parent }
    }
  }

  /// Calls a handler and encodes its single response.
  private func one<Input, Reply: Message>(
    _ handler: (Input, AuthContext) async throws -> Reply,
    _ request: Input,
    _ auth: AuthContext
  ) async throws -> Response {
    .json(ByteBuffer(bytes: try await handler(request, auth).jsonUTF8Bytes() as [UInt8]))
  }

  /// Calls a handler with a body's message, into which `bind` inserts the part from the path.
  private func one<Input: Message, Reply: Message>(
    _ handler: (Input, AuthContext) async throws -> Reply,
    _ body: ByteBuffer,
    _ auth: AuthContext,
    _ bind: (inout Input) -> Void
  ) async throws -> Response {
    var request: Input = try await JSONPayload.message(body)
    bind(&request)
    return try await one(handler, request, auth)
  }

  /// Calls a handler and streams its responses as an array.
  private func many<Input: Message, Reply: Message>(
    _ handler: (Input, AuthContext) async throws -> StreamReplies<Reply>,
    _ body: ByteBuffer,
    _ auth: AuthContext,
    _ bind: (inout Input) -> Void
  ) async throws -> Response {
    var request: Input = try await JSONPayload.message(body)
    bind(&request)
    return JSONPayload.array(try await handler(request, auth))
  }
}
