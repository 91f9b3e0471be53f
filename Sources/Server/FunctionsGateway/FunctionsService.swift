package import Events
import FlowControl
package import HTTPMessages
package import HTTPSupport
import HTTPTypes
import Identifiers
package import Invocation
package import Logging
package import Manifests
package import NIOCore

/// The service on the port of the functions.
///
/// It accepts the calls of clients, `/{project}/{region}/{name}[/…]`, and the routes through which
/// Firebase's tools and emulators list functions and post events.
///
/// It forwards bytes unchanged in both directions. Its own responses to calls are errors, such as a
/// 404 that lists the existing names, 413, 429, 503, 504, or 500 after a crash. They have the form
/// of a callable's error and carry CORS headers, because browsers hide errors without them. A
/// client that calls with `Accept: text/event-stream` receives the error as the last event of a
/// stream with status 200, because such clients read the events and not the status.
package struct FunctionsService: ImmediateResponder {
  let project: String
  let functions: @Sendable () -> [String: FunctionEndpoint]
  let unserved: @Sendable () -> String?
  let invoker: any FunctionInvoker
  let folder: String?
  let isEnabled: @Sendable () async -> Bool
  let publish: @Sendable (CloudEvent) async throws -> Void
  let makeID: @Sendable () -> String
  let logger: Logger
  /// The foreign projects whose calls have been logged.
  let loggedProjects = OnceEach()

  /// Creates the service for the functions of one project.
  ///
  /// - Parameters:
  ///   - project: The project ID that calls contain in their path.
  ///   - functions: Returns the current functions; called on each request.
  ///   - unserved: Returns the reason why a deployed function may be missing from them; nil if none
  ///     is.
  ///   - invoker: Runs the functions.
  ///   - folder: The folder of the functions' sources, for the list.
  ///   - isEnabled: Returns true if functions currently receive events.
  ///   - publish: Delivers an event of another service to the functions that wait for it.
  ///   - makeID: Creates the IDs of invocations.
  ///   - logger: Logs calls to other projects and invocations that fail without a status.
  package init(
    project: String,
    functions: @escaping @Sendable () -> [String: FunctionEndpoint],
    unserved: @escaping @Sendable () -> String? = { nil },
    invoker: any FunctionInvoker,
    folder: String? = nil,
    isEnabled: @escaping @Sendable () async -> Bool,
    publish: @escaping @Sendable (CloudEvent) async throws -> Void,
    makeID: @escaping @Sendable () -> String = { RandomID.make() },
    logger: Logger
  ) {
    self.project = project
    self.functions = functions
    self.unserved = unserved
    self.invoker = invoker
    self.folder = folder
    self.isEnabled = isEnabled
    self.publish = publish
    self.makeID = makeID
    self.logger = logger
  }

  /// Begins to handle a call; returns nil for routes of Firebase's tools.
  ///
  /// `respond` handles those routes.
  package func begin(
    _ request: Request,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (Response) -> Void
  ) -> (@Sendable () -> Void)? {
    let isTools = request.path == "/backends" || request.path.hasPrefix("/functions/projects/")
    return isTools ? nil : beginCall(request, on: eventLoop, reply: reply)
  }

  /// Handles any request; an invocation is cancelled when its client disconnects.
  package func respond(to request: Request, _ context: HTTPContext) async -> Response {
    let segments = request.pathSegments ?? []
    if segments == ["backends"] { return backends(request) }
    // Any other path is a call. A call's second segment is a region, and none is named `projects`.
    guard segments.first == "functions", segments.count >= 4, segments[1] == "projects" else {
      return await call(request, context)
    }
    do {
      switch (request.method, segments[3], segments.count) {
      case (.post, "triggers", 5): return try await trigger(segments[4], request)
      case (.post, "trigger_multicast", 4): return try await multicast(request)
      default: return .text("There is no \(request.method) \(request.path).", status: .notFound)
      }
    } catch {
      return .error(error)
    }
  }
}
