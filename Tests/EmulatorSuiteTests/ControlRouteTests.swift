import HTTPTypes
import Logging
import ServiceLifecycle
import StatusCodes
import Testing

@testable import EmulatorSuite

@Suite("Routes of the hub")
struct ControlRouteTests {
  private func find(
    _ method: HTTPRequest.Method,
    _ path: String,
    in routes: [ControlRoute] = ControlAPI.routes
  ) -> (path: String, captures: [String])? {
    ControlRoute.find(method, path.split(separator: "/").map(String.init), in: routes).map {
      ($0.route.path.joined(separator: "/"), $0.captures)
    }
  }

  @Test(
    "A path with a name goes before one with a star, in whatever order they are listed",
    arguments: [ControlAPI.routes, ControlAPI.routes.reversed()]
  )
  func order(routes: [ControlRoute]) {
    let all = find(.post, "hearth/v1/events/retry", in: routes)
    let one = find(.post, "hearth/v1/events/retry/retry", in: routes)
    let environment = find(.get, "hearth/v1/workers/environment", in: routes)

    #expect(all?.path == "hearth/v1/events/retry" && all?.captures == [])
    #expect(one?.path == "hearth/v1/events/*/retry" && one?.captures == ["retry"])
    #expect(environment?.captures == [])
  }

  @Test("Another method, another length and another word are no route")
  func unknown() {
    #expect(find(.get, "hearth/v1/settle") == nil)
    #expect(find(.get, "hearth/v1/suite/x") == nil)
    #expect(find(.get, "hearth/v2/suite") == nil)
    #expect(find(.get, "")?.path == "")
  }

  @Test("What runs code with the functions' secrets is for this machine alone")
  func access() {
    let guarded = ControlAPI.routes.filter { $0.access == .thisMachine }
    let workers = ControlAPI.routes.filter { $0.path.starts(with: ["hearth", "v1", "workers"]) }

    #expect(!workers.isEmpty)
    #expect(guarded.map(\.path) == workers.map(\.path))
  }

  @Test("The console neither deploys or runs other code, nor reads secrets, nor writes files")
  func consoleAccess() {
    let closed = ControlAPI.routes.filter { !$0.isInConsole }
    let names = closed.map { "\($0.method) \($0.path.joined(separator: "/"))" }

    #expect(
      Set(names) == [
        "POST _admin/export", "POST hearth/v1/export", "POST hearth/v1/import",
        "POST hearth/v1/deployments", "POST hearth/v1/deployments/rollback",
        "DELETE hearth/v1/functions", "GET hearth/v1/workers/environment",
        "POST hearth/v1/workers", "DELETE hearth/v1/workers/*",
      ]
    )
  }

  @Test("Firebase's export, which writes files, is for this machine or those with the token")
  func exportAccess() {
    let guarded = ControlAPI.routes.filter { $0.access == .thisMachineOrToken }
    #expect(guarded.map { $0.path.joined(separator: "/") } == ["_admin/export"])
  }

  @Test("Work that lasts until the stop is cancelled by it, and later work at once")
  func stopNotice() async throws {
    let notice = StopNotice()
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    let group = ServiceGroup(
      services: [notice],
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
    async let running: Void = group.run()
    let value = try await notice.untilStop { 7 }
    let work = Task {
      try await notice.untilStop {
        start.yield()
        for await _ in AsyncStream<Never>.makeStream().stream {}
        try Task.checkCancellation()
      }
    }
    for await _ in started { break }
    await group.triggerGracefulShutdown()

    #expect(value == 7)
    await #expect(throws: StatusError(.unavailable, "The suite is stopping.")) {
      try await work.value
    }
    try await running
    await #expect(throws: StatusError(.unavailable, "The suite is stopping.")) {
      try await notice.untilStop { for await _ in AsyncStream<Never>.makeStream().stream {} }
    }
  }

  @Test("No two routes are the same")
  func unique() {
    let names = ControlAPI.routes.map { "\($0.method) \($0.path.joined(separator: "/"))" }
    #expect(Set(names).count == names.count)
  }
}
