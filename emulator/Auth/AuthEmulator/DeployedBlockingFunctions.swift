import HTTPMessages
import HTTPTypes
import Identifiers
package import Invocation
package import Manifests
import NIOCore

/// The deployed functions that Auth asks before a user is created or signs in.
package struct DeployedBlockingFunctions: BlockingFunctions {
  private let invoker: any FunctionInvoker
  private let endpoints: @Sendable () -> [String: FunctionEndpoint]

  /// Creates the port to a fleet's functions; `endpoints` returns the deployed ones by name.
  package init(
    invoker: any FunctionInvoker,
    endpoints: @escaping @Sendable () -> [String: FunctionEndpoint]
  ) {
    self.invoker = invoker
    self.endpoints = endpoints
  }

  package func isDeployed(_ event: BlockingEvent) -> Bool { function(for: event) != nil }

  package func call(_ event: BlockingEvent, body: [UInt8]) async throws -> BlockingReply? {
    guard let function = function(for: event) else { return nil }
    let request = InvocationRequest(
      id: RandomID.make(),
      function: function,
      head: HTTPRequest(
        method: .post,
        scheme: "http",
        authority: "localhost",
        path: "/",
        headerFields: [.contentType: "application/json", .contentLength: "\(body.count)"]
      ),
      body: ByteBuffer(bytes: body),
      timeout: Self.timeMax
    )
    let reply = try await invoker.invoke(request)
    let bytes = try await reply.body.collect(upTo: Self.replyBytesMax)
    return BlockingReply(status: reply.head.status.code, body: Array(bytes.readableBytesView))
  }

  private func function(for event: BlockingEvent) -> String? {
    endpoints().filter { $0.value.blockingTrigger?.eventType == event.eventType }.keys.min()
  }

  /// The time that Firebase allows.
  private static let timeMax = Duration.seconds(7)
  private static let replyBytesMax = 1 << 20
}
