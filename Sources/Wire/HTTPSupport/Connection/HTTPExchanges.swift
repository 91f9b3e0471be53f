import HTTPMessages
import Logging
import NIOCore

/// The state that all connections of one listening socket share.
struct HTTPExchanges: Sendable {
  let configuration: HTTPService.Configuration
  let roster: ConnectionRoster
  let budget: TransferBudget?
  let connections: OpenConnections
  let screen: HTTPService.Screen
  let immediate: (any ImmediateResponder)?
  let upgrader: HTTPService.Upgrader?
  let outlivesClient: @Sendable (Request) -> Bool
  let responder: HTTPService.Responder
  let logger: Logger

  /// Calls the responder in a task; `reply` is called once, on any thread.
  func respond(
    to request: Request,
    _ context: HTTPContext,
    reply: @escaping @Sendable (Response) -> Void
  ) -> CountedTask {
    task {
      do {
        // Holds the memory reserved for the body until the responder is done with it.
        defer { withExtendedLifetime(request.hold) {} }
        // Many tasks may have waited for a thread while their clients left.
        try Task.checkCancellation()
        reply(try await responder(request, context))
      } catch {
        logger.debug("A request failed", metadata: ["error": "\(error)"])
        reply(.error(error))
      }
    }
  }

  /// Starts a task that the shutdown of the socket waits for.
  func task(_ body: @escaping @Sendable () async -> Void) -> CountedTask {
    let id = connections.taskBegan()
    // The request's `Exchange` owns the task and cancels it when the client leaves.
    let task = Task {
      await body()
      connections.taskEnded(id)
    }
    return CountedTask(task: task, id: id)
  }

  /// Lets a request's task continue without its client until the server stops.
  func keep(_ running: CountedTask) { connections.keep(running.task, running.id) }

  /// A running task and the id under which `OpenConnections` counts it.
  struct CountedTask {
    var task: Task<Void, Never>
    var id: UInt64

    func cancel() { task.cancel() }
  }
}
