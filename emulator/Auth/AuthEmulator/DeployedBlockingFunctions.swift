import HTTPMessages
import HTTPTypes
import Identifiers
package import Invocation
package import Manifests
import NIOCore

/// The deployed functions that Auth asks before a user is created or signs in.
package struct DeployedBlockingFunctions: BlockingFunctions {
  private let invoker: any FunctionInvoker
  private let endpoints: @Sendable () throws -> [String: FunctionEndpoint]

  /// Creates the port to a fleet's functions; `endpoints` returns the deployed ones by name.
  ///
  /// It throws an `InvocationError` while it is unknown which functions are deployed. Each event
  /// then counts as one with a function that does not run, so that nobody gets past it.
  package init(
    invoker: any FunctionInvoker,
    endpoints: @escaping @Sendable () throws -> [String: FunctionEndpoint]
  ) {
    self.invoker = invoker
    self.endpoints = endpoints
  }

  package func isDeployed(_ event: BlockingEvent) -> Bool {
    // While the functions are unknown, `call` throws the reason.
    (try? endpoints()).map { Self.function(for: event, in: $0) != nil } ?? true
  }

  package func call(_ event: BlockingEvent, body: [UInt8]) async throws -> BlockingReply? {
    guard let function = Self.function(for: event, in: try endpoints()) else { return nil }
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

  private static func function(
    for event: BlockingEvent,
    in endpoints: [String: FunctionEndpoint]
  ) -> String? {
    endpoints.filter { $0.value.blockingTrigger?.eventType == event.eventType }.keys.min()
  }

  /// The time that Firebase allows.
  private static let timeMax = Duration.seconds(7)
  private static let replyBytesMax = 1 << 20
}
