import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Deployment

@Suite("Watch plan")
struct WatchPlanTests {
  @Test("Settings alone need no build; with a source they do")
  func settings() {
    var plan = WatchPlan()

    let settings: Set = ["/p/.env", "/p/.env.local", "/p/.secret.local"]
    #expect(plan.action(for: settings, duringBuild: false) == .reload)
    #expect(plan.action(for: settings, duringBuild: true) == .reload)
    #expect(plan.action(for: settings.union(["/p/a.swift"]), duringBuild: false) == .build)
  }

  @Test("Files that change during every build stop starting builds, until a person changes one")
  func loops() {
    var plan = WatchPlan()
    #expect(plan.action(for: ["/p/a.swift"], duringBuild: false) == .build)
    #expect(plan.action(for: ["/p/made.swift"], duringBuild: true) == .build)
    #expect(plan.action(for: ["/p/made.swift"], duringBuild: true) == .build)
    #expect(
      plan.action(for: ["/p/made.swift"], duringBuild: true) == .pause(files: ["/p/made.swift"])
    )

    #expect(plan.action(for: ["/p/made.swift"], duringBuild: false) == .build)
    #expect(plan.action(for: ["/p/made.swift"], duringBuild: true) == .build)
  }

  @Test("Other files during each build are a person's, and are built")
  func noLoop() {
    var plan = WatchPlan()
    for round in 0..<10 {
      let action = plan.action(for: ["/p/\(round).swift"], duringBuild: round > 0)
      #expect(action == .build)
    }
  }
}

@Suite("Watched files")
struct WatchedFilesTests {
  private let folder: TemporaryFolder
  private var files: WatchedFiles

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("Sources/.build"),
      withIntermediateDirectories: true
    )
    try FileManager.default.createDirectory(
      atPath: folder.path("Sources/data"),
      withIntermediateDirectories: true
    )
    try folder.write("Sources/a.swift", "1")
    files = WatchedFiles(
      roots: [folder.path("Sources"), folder.path(".env")],
      excluded: [folder.path("Sources/data")]
    )
    _ = files.changes()
  }

  @Test("New, changed and deleted files are changes, each once")
  mutating func changes() throws {
    #expect(files.changes() == [])
    try folder.write("Sources/a.swift", "2")
    try folder.write("Sources/b.swift", "1")
    try folder.write(".env", "A=1")
    #expect(
      files.changes()
        == [folder.path("Sources/a.swift"), folder.path("Sources/b.swift"), folder.path(".env")]
    )
    #expect(files.changes() == [])
    try FileManager.default.removeItem(atPath: folder.path("Sources/b.swift"))
    #expect(files.changes() == [folder.path("Sources/b.swift")])
  }

  @Test("A file that is touched, or written as it was, has not changed")
  mutating func touched() throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1)],
      ofItemAtPath: folder.path("Sources/a.swift")
    )
    #expect(files.changes() == [])
    try FileManager.default.removeItem(atPath: folder.path("Sources/a.swift"))
    try folder.write("Sources/a.swift", "1")
    #expect(files.changes() == [])
  }

  @Test(
    "Hidden files, build folders, the data folder and editors' temporaries are ignored",
    arguments: [
      ".a.swift.swp", "a.swift~", "#a.swift#", ".#a.swift", "4913", "a.swift.tmp",
      ".build/made.swift", "data/store.sqlite", "a.swift___jb_tmp___",
    ]
  )
  mutating func ignored(name: String) throws {
    try folder.write("Sources/\(name)", "1")

    #expect(files.changes() == [])
  }
}

/// The watch loop over real files, with a manual clock and a `swift` that only describes packages.
@Suite("Source watch", .timeLimit(.minutes(5)))
struct SourceWatchTests {
  private let folder: TemporaryFolder
  private let clock = ManualClock()

  init() throws {
    folder = try TemporaryFolder()
    for path in ["app/Sources/App", "app/Tests/AppTests", "lib/Sources/Lib"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(path),
        withIntermediateDirectories: true
      )
    }
    try folder.write("app/Package.swift", "app")
    try folder.write("app/Sources/App/a.swift", "1")
    try folder.write("lib/Sources/Lib/l.swift", "1")
    // Responds by the package's path, its third argument.
    let script = """
      #!/bin/sh
      case "$3" in
      */app) echo '{"targets":[{"path":"Sources/App","type":"executable"},\
      {"path":"Tests/AppTests","type":"test"}],\
      "dependencies":[{"type":"fileSystem","path":"\(folder.path("lib"))"},\
      {"type":"sourceControl","url":"https://example.com/x"}]}' ;;
      *) echo '{"targets":[{"path":"Sources/Lib","type":"library"}]}' ;;
      esac
      """
    try folder.write("swift", script, isExecutable: true)
  }

  /// Runs a watch beside `body`, which receives the requests so far.
  private func watching(
    act: @escaping @Sendable (SourceWatch.Request) async -> Bool = { _ in true },
    _ body: (Requests) async throws -> Void
  ) async throws {
    let watch = SourceWatch(
      .package(path: folder.path("app"), product: nil, configuration: "debug"),
      project: "demo-test",
      excluding: [],
      clock: clock,
      swift: ChildProcess.program(folder.path("swift"))
    )
    await watch.begin()
    let requests = Requests()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        do {
          try await watch.run { request in
            requests.add(request)
            return await act(request)
          }
        } catch is CancellationError {
          // The test has ended.
        }
      }
      try await body(requests)
      group.cancelAll()
    }
  }

  /// Lets the watch look at the files `count` times and waits until it sleeps again.
  private func look(_ count: Int = 1) async {
    for _ in 0..<count {
      await clock.waitForSleepers()
      clock.advance(by: .seconds(1))
    }
    await clock.waitForSleepers()
  }

  private func path(_ name: String) -> String { folder.path(name) }

  @Test("Sources of the package and of those it names by path are followed, tests are not")
  func follows() async throws {
    try await watching { requests in
      await look(3)
      #expect(requests.all == [])
      try folder.write("app/Tests/AppTests/t.swift", "1")
      try folder.write("app/README.md", "1")
      await look(3)
      #expect(requests.all == [])

      try folder.write("lib/Sources/Lib/l.swift", "2")
      await look(2)
      #expect(requests.all == [.build([path("lib/Sources/Lib/l.swift")])])
      try folder.write("app/.env.demo-test", "A=1")
      await look(2)
      #expect(requests.all.last == .reload([path("app/.env.demo-test")]))
      #expect(requests.all.count == 2)
    }
  }

  @Test("Changes in quick succession are one build, after the last of them")
  func batches() async throws {
    try await watching { requests in
      for round in 2...5 {
        try folder.write("app/Sources/App/a.swift", "\(round)")
        try folder.write("app/Sources/App/\(round).swift", "1")
        await look()
        #expect(requests.all == [])
      }
      await look()
      #expect(
        requests.all == [
          .build(["2", "3", "4", "5", "a"].map { path("app/Sources/App/\($0).swift") })
        ]
      )
    }
  }

  @Test("A change during a build is built when that has ended")
  func duringBuild() async throws {
    let file = path("app/Sources/App/late.swift")
    let saves = Mutex(1)
    try await watching { _ in
      // The file is saved once while the first build runs.
      let saves = saves.withLock { count in
        defer { count -= 1 }
        return count
      }
      if saves > 0 { try? Data("late".utf8).write(to: URL(filePath: file)) }
      return true
    } _: { requests in
      try folder.write("app/Sources/App/a.swift", "2")
      await look(2)
      #expect(requests.all.count == 1)
      await look(6)
      #expect(requests.all == [.build([path("app/Sources/App/a.swift")]), .build([file])])
    }
  }

  @Test("A build that touches files starts none; one that writes new contents stops after three")
  func buildWrites() async throws {
    let made = path("app/Sources/App/made.swift")
    let builds = Mutex(0)
    try await watching { _ in
      let count = builds.withLock { count in
        count += 1
        return count
      }
      // First writes the original content, then time stamps, as generators do. It stops after four
      // builds, so that the end of the test starts no build.
      let text = count == 1 ? "1" : "at \(count)"
      if count <= 4 { try? Data(text.utf8).write(to: URL(filePath: made)) }
      return true
    } _: { requests in
      try folder.write("app/Sources/App/made.swift", "1")
      await look(8)
      #expect(requests.all == [.build([made])])

      try folder.write("app/Sources/App/a.swift", "2")
      await look(20)
      #expect(
        requests.all.dropFirst() == [
          .build([path("app/Sources/App/a.swift")]), .build([made]), .build([made]),
          .pause([made]),
        ]
      )
    }
  }

  @Test("What could not be taken up is asked for again")
  func busy() async throws {
    let refusals = Mutex(2)
    try await watching { _ in
      refusals.withLock { count in
        defer { count -= 1 }
        return count <= 0
      }
    } _: { requests in
      try folder.write("app/Sources/App/a.swift", "2")
      await look(10)
      #expect(requests.all == Array(repeating: .build([path("app/Sources/App/a.swift")]), count: 3))
    }
  }
}

/// The requests of a watch.
private final class Requests: Sendable {
  private let requests = Mutex<[SourceWatch.Request]>([])

  var all: [SourceWatch.Request] { requests.withLock { $0 } }

  func add(_ request: SourceWatch.Request) { requests.withLock { $0.append(request) } }
}
