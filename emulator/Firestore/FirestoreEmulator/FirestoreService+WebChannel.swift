import DocumentStore
import FirestoreProtos
import FirestoreWire
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identity
import NIOCore
import StatusCodes
import SwiftProtobuf
import WebChannel

extension FirestoreService {
  /// Responds to a WebChannel request of a web page, whose stream messages are JSON.
  func respond(to request: Request, on method: RESTRoute.ChannelMethod) async -> Response {
    await webChannels.respond(to: request) { stream in
      do {
        let auth = try self.authenticate(stream)
        let resourcePrefix = stream.parameters["database"]
        let client = Self.client(of: stream)
        switch method {
        case .listen:
          try await self.listen(
            to: { try await Self.message(try await stream.next()) },
            resourcePrefix: resourcePrefix,
            auth: auth,
            client: client
          ) {
            for reply in $0 { try await stream.send { try await Self.json(reply) } }
          }
        case .write:
          try await self.write(
            from: { try await Self.message(try await stream.next()) },
            resourcePrefix: resourcePrefix,
            auth: auth,
            client: client
          ) {
            let response = $0
            try await stream.send { try response.jsonString() }
          }
        }
      } catch {
        let reported = self.publicError(for: error)
        throw StatusError(reported.statusCode, reported.statusMessage)
      }
    }
  }

  /// The encoded size above which writing a document as JSON takes long, at least for many pages.
  private static let largeBytes = 32 << 10

  private static func json(_ reply: ListenReply) async throws -> String {
    guard case .document(_, let encoded, _, _) = reply, encoded.count > largeBytes else {
      return try reply.proto.jsonString()
    }
    return try await withTaskExecutorPreference(LongWorkExecutor.shared) {
      // Moves this task to the end of the executor's queue.
      await Task.yield()
      return try reply.proto.jsonString()
    }
  }

  private static func message<M: Message>(_ text: String) async throws -> M {
    try await JSONPayload.message(ByteBuffer(string: text))
  }

  /// Returns the page behind a channel, identified by header fields that its channels share.
  ///
  /// Nothing names the page itself. Several windows of one app can be the same client and then wait
  /// for each other's listeners.
  private static func client(of stream: WebChannelStream) -> ListenClient {
    let names = ["origin", "user-agent", "authorization", "x-firebase-gmpid"]
    return .page(
      names.compactMap { HTTPField.Name($0) }.map { stream.headers[$0] ?? "" }
        .joined(separator: "\n")
    )
  }

  /// Returns the caller's identity; a page without a token is unauthenticated.
  private func authenticate(_ stream: WebChannelStream) throws -> AuthContext {
    guard let authorization = stream.headers[.authorization] else { return .unauthenticated }
    return try authenticate(authorization: authorization)
  }
}
