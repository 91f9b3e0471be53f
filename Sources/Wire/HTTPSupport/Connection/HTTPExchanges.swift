import Invocation
import Logging
import NIOCore

/// What all connections of one listening socket share.
struct HTTPExchanges: Sendable {
  let configuration: HTTPService.Configuration
  let roster: ConnectionRoster
  let connections: OpenConnections
  let screen: HTTPService.Screen
  let immediate: (any ImmediateResponder)?
  let responder: HTTPService.Responder
  let logger: Logger

  /// Asks the responder in a task; `reply` is called once, on any thread.
  func respond(
    to request: Request,
    _ context: HTTPContext,
    reply: @escaping @Sendable (Response) -> Void
  ) -> Task<Void, Never> {
    task {
      do {
        reply(try await responder(request, context))
      } catch {
        logger.debug("A request failed", metadata: ["error": "\(error)"])
        reply(.error(error))
      }
    }
  }

  /// A task whose end the socket's end waits for.
  func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    connections.taskBegan()
    return Task {
      await body()
      connections.taskEnded()
    }
  }
}
