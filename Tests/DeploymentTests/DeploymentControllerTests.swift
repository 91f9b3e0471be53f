import Foundation
import HTTPMessages
import HTTPTypes
import Invocation
import Logging
import Manifests
import NIOCore
import Testing
import TestSupport
import WorkerPool

@testable import Deployment

/// Deployments with real binaries and workers: the executable `SampleFunctions` and scripts.
@Suite("Deployment", .timeLimit(.minutes(5)))
struct DeploymentControllerTests {
  @Test("A deployment serves, and so does the next start")
  func deploysAndRestores() async throws {
    let data = try TemporaryFolder()
    let source = try TemporaryFolder()
    let deployed = try await withProject(data, source) { project in
      let record = try await project.deploy()
      #expect(record.manifest.endpoints["echo"]?.callableTrigger != nil)
      #expect(try await project.call("echo", #"{"data":1}"#) == #"{"result":1}"#)
      return record
    }
    try await withProject(data, source) { project in
      let restored = try await project.controller.restore()
      #expect(restored == deployed)
      let reply = try await project.call("echo", #"{"data":1}"#)
      #expect(reply == #"{"result":1}"#)
    }
  }

  @Test("The next version takes over; those before it are kept in number")
  func redeploys() async throws {
    try await withProject { project in
      var ids: [String] = []
      for version in 1...5 {
        try project.source.write(".env", "SAMPLE_VERSION=v\(version)")
        ids.append(try await project.deploy().id)
        #expect(try await project.call("count").contains(#""version":"v\#(version)""#))
      }

      let kept = try FileManager.default.contentsOfDirectory(atPath: project.data.path)
      #expect(kept.count == DeploymentFolder.keptMax + 3)
      #expect(Set(kept).isSuperset(of: ["current", "starting", ids[4]]))
    }
  }

  @Test("Deployments of one binary share its file, also with those that were removed")
  func sharesTheBinary() async throws {
    try await withProject { project in
      for _ in 1...5 { _ = try await project.deploy() }
      let folder = DeploymentFolder(path: project.data.path)
      let records = folder.records()
      let inodes = try records.map { record in
        try FileManager.default.attributesOfItem(atPath: folder.binary(record.id))[
          .systemFileNumber
        ]
          as? UInt64
      }

      #expect(records.count == DeploymentFolder.keptMax + 1)
      #expect(Set(inodes).count == 1)
      #expect(try await project.call("echo", #"{"data":1}"#) == #"{"result":1}"#)
    }
  }

  @Test("Beside the current deployment and the replaced one, others are kept within their bound")
  func keepsLittle() throws {
    let data = try TemporaryFolder()
    let source = try TemporaryFolder()
    let folder = DeploymentFolder(path: data.path, keptBytesMax: 10)
    var records: [DeploymentRecord] = []
    for number in 1...5 {
      let id = "2026112\(number)T000000-abcd"
      try source.write("functions-\(number)", "binary \(number)", isExecutable: true)
      try folder.stage(source.path("functions-\(number)"), id: id)
      let record = DeploymentRecord(
        id: id,
        project: "p",
        manifest: FunctionManifest(endpoints: ["f": FunctionEndpoint(entryPoint: "f")]),
        environmentFolder: source.path,
        time: id,
        replaced: records.last?.id
      )
      try folder.makeCurrent(record)
      records.append(record)
    }
    folder.prune(current: try #require(records.last))

    // The third newest has eight bytes, and the fourth would be beyond the bound.
    #expect(folder.records().map(\.id) == records.suffix(3).reversed().map(\.id))
  }

  @Test("Functions of equal names leave the old version, and are named")
  func equalNames() async throws {
    try await withProject { project in
      let first = try await project.deploy()
      try project.source.write(".env", "SAMPLE_INVALID=1")
      let error = await #expect(throws: DeploymentError.self) { try await project.deploy() }

      #expect(error?.message.contains("echo") == true)
      #expect(try await project.call("echo", #"{"data":1}"#) == #"{"result":1}"#)
      let kept = try FileManager.default.contentsOfDirectory(atPath: project.data.path)
      #expect(Set(kept) == ["current", "starting", first.id])
    }
  }

  @Test(
    "A binary that does not list its functions is refused",
    arguments: [
      ("exit 0", "This is not a functions binary"),
      ("echo broken >&2; exit 3", "broken"),
      ("kill -9 $$", "ended with"),
      ("sleep 60", "did not describe its functions within 1.0 seconds"),
      ("echo nonsense > $FUNCTIONS_MANIFEST_OUTPUT_PATH", "no valid manifest"),
    ]
  )
  func unsoundBinary(script: String, message: String) async throws {
    let isSlow = script.hasPrefix("sleep")
    try await withProject(manifestTimeout: .seconds(isSlow ? 1 : 30)) { project in
      try project.source.write("bad", "#!/bin/sh\n\(script)\n", isExecutable: true)
      let error = await #expect(throws: DeploymentError.self) {
        try await project.deploy(project.source.path("bad"))
      }

      #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
      #expect(try await project.controller.restore() == nil)
    }
  }

  @Test("A binary that lists its functions but does not run them leaves the old version")
  func workerFails() async throws {
    try await withProject { project in
      let first = try await project.deploy()
      let manifest = try JSONEncoder().encode(first.manifest)
      try project.source.write("manifest", String(decoding: manifest, as: UTF8.self))
      let script = """
        #!/bin/sh
        [ "$FUNCTION_TARGET" ] && { echo "no good" >&2; exit 7; }
        cat \(project.source.path("manifest")) > $FUNCTIONS_MANIFEST_OUTPUT_PATH
        """
      try project.source.write("bad", script, isExecutable: true)
      let error = await #expect(throws: (any Error).self) {
        try await project.deploy(project.source.path("bad"))
      }

      #expect(error.map { "\($0)".contains("it exited with code 7\nno good") } == true)
      #expect(try await project.call("echo", #"{"data":1}"#) == #"{"result":1}"#)
      #expect(try await project.controller.restore() == first)
    }
  }

  @Test("A deployment that cannot be recorded gives way to what was before")
  func cannotBeRecorded() async throws {
    try await withProject { project in
      // A folder in place of the file that names the current deployment.
      try FileManager.default.createDirectory(
        atPath: project.data.path("current/x"),
        withIntermediateDirectories: true
      )
      await #expect(throws: (any Error).self) { try await project.deploy() }

      #expect(try FileManager.default.contentsOfDirectory(atPath: project.data.path) == ["current"])
    }
  }

  @Test(
    "A rollback serves what the current deployment replaced, and a named one, also after a start"
  )
  func rollsBack() async throws {
    let data = try TemporaryFolder()
    let source = try TemporaryFolder()
    let binary = try BuiltProduct.path("SampleFunctions")
    let ids = try await withProject(data, source) { project in
      var ids: [String] = []
      for version in 1...3 {
        // A rollback uses the current settings, so only the binary distinguishes versions.
        let script = "#!/bin/sh\nSAMPLE_VERSION=v\(version) exec \(binary)\n"
        try project.source.write("functions", script, isExecutable: true)
        ids.append(try await project.deploy(project.source.path("functions")).id)
      }
      let (current, all) = try await project.controller.deployments()
      #expect(current == ids[2])
      #expect(all.map(\.id) == ids.reversed())

      #expect(try await project.controller.rollBack(to: nil).id == ids[1])
      #expect(try await project.call("count").contains(#""version":"v2""#))
      #expect(try await project.controller.rollBack(to: nil).id == ids[0])
      await #expect(throws: DeploymentError.self) { try await project.controller.rollBack(to: nil) }
      #expect(try await project.call("count").contains(#""version":"v1""#))
      #expect(try await project.controller.rollBack(to: ids[1]).id == ids[1])
      let error = await #expect(throws: DeploymentError.self) {
        try await project.controller.rollBack(to: "nonsense")
      }
      #expect(error?.message.contains(ids[2]) == true)
      return ids
    }
    try await withProject(data, source) { (project: Project) async throws -> Void in
      #expect(try await project.controller.restore()?.id == ids[1])
      #expect(try await project.call("count").contains(#""version":"v2""#))
    }
  }

  @Test("A rollback to a binary that no longer starts leaves what serves")
  func rollbackFails() async throws {
    try await withProject { project in
      let first = try await project.deploy()
      let second = try await project.deploy()
      // Replaces the file, because a running executable cannot be written.
      try FileManager.default.removeItem(atPath: project.data.path("\(first.id)/functions"))
      try project.data.write("\(first.id)/functions", "#!/bin/sh\nexit 3\n", isExecutable: true)
      await #expect(throws: (any Error).self) { try await project.controller.rollBack(to: nil) }

      #expect(try await project.call("echo", #"{"data":1}"#) == #"{"result":1}"#)
      #expect(try await project.controller.restore()?.id == second.id)
    }
  }

  @Test("Deleted functions are gone, also after a start, until the next deployment")
  func deletes() async throws {
    let data = try TemporaryFolder()
    let source = try TemporaryFolder()
    try await withProject(data, source) { project in
      let first = try await project.deploy()
      let rest = try await project.controller.delete(["echo", "whoAmI"])
      #expect(rest.note == "deleted echo, whoAmI")
      #expect(
        Set(first.manifest.endpoints.keys).subtracting(rest.manifest.endpoints.keys) == [
          "echo", "whoAmI",
        ]
      )
      await #expect(throws: InvocationError.self) { try await project.call("echo") }
      #expect(try await project.call("count").contains("version"))
      let error = await #expect(throws: DeploymentError.self) {
        try await project.controller.delete(["echo"])
      }
      #expect(error?.message.hasPrefix("No function echo is deployed.") == true)
      #expect(error?.message.contains(" Functions: ") == true)
    }
    try await withProject(data, source) { project in
      #expect(try await project.controller.restore()?.manifest.endpoints["echo"] == nil)
      #expect(try await project.call("count").contains("version"))
      #expect(try await project.controller.rollBack(to: nil).manifest.endpoints["echo"] != nil)
      _ = try await project.controller.delete(["echo"])
      #expect(try await project.deploy().manifest.endpoints["echo"] != nil)
      #expect(try await project.call("echo", #"{"data":1}"#) == #"{"result":1}"#)
    }
  }

  @Test("Deploying some functions keeps the others' version, however often and after a start")
  func deploysSome() async throws {
    let data = try TemporaryFolder()
    let source = try TemporaryFolder()
    let binary = try BuiltProduct.path("SampleFunctions")
    try await withProject(data, source) { project in
      for version in 1...(DeploymentFolder.keptMax + 3) {
        let script = "#!/bin/sh\nSAMPLE_VERSION=v\(version) exec \(binary)\n"
        try project.source.write("functions", script, isExecutable: true)
        let record = try await project.deploy(
          project.source.path("functions"),
          only: version == 1 ? nil : ["echo"]
        )
        #expect(record.binary(of: "echo") == record.id)
      }
      #expect(try await project.call("count").contains(#""version":"v1""#))
      let error = await #expect(throws: DeploymentError.self) {
        try await project.deploy(only: ["nonsense"])
      }
      #expect(error?.message.hasPrefix("No function nonsense is in the package.") == true)
    }
    try await withProject(data, source) { project in
      let restored = try #require(try await project.controller.restore())
      #expect(restored.binary(of: "count") != restored.id)
      #expect(try await project.call("count").contains(#""version":"v1""#))
      #expect(try await project.call("echo", #"{"data":1}"#) == #"{"result":1}"#)
    }
  }

  @Test("Before the first deployment there is nothing to restore; a damaged one is reported")
  func restoresNothing() async throws {
    try await withProject { project in
      #expect(try await project.controller.restore() == nil)

      let record = try await project.deploy()
      try project.data.write("\(record.id)/deployment.json", "{")
      let error = await #expect(throws: DeploymentError.self) {
        try await project.controller.restore()
      }
      #expect(error?.message.contains("is damaged") == true)
    }
  }

  @Test("Workers see the project's variables and the suite's, but no secret they do not declare")
  func environment() async throws {
    try await withProject { project in
      try project.source.write(".env", "MINE=1")
      try project.source.write(".secret.local", "SECRET=1")
      _ = try await project.deploy()
      let names = try await project.call("environment")

      #expect(names.contains(#""MINE""#))
      #expect(names.contains(#""FIRESTORE_EMULATOR_HOST""#))
      #expect(!names.contains("SECRET"))
    }
  }

  @Test("Two deployments at once are one too many")
  func oneAtATime() async throws {
    try await withProject(manifestTimeout: .seconds(240)) { project in
      let source = project.source
      let (begun, end) = (source.path("begun"), source.path("end"))
      let script = "#!/bin/sh\n: > '\(begun)'\nuntil [ -e '\(end)' ]; do sleep 0.1; done\n"
      try source.write("slow", script, isExecutable: true)
      let first = Task { try await project.deploy(source.path("slow")) }
      await eventually("the first deployment is under way") {
        FileManager.default.fileExists(atPath: begun)
      }
      let second = await #expect(throws: DeploymentError.self) { try await project.deploy() }
      try source.write("end", "")

      #expect(second?.message.contains("Another deployment is under way") == true)
      await #expect(throws: DeploymentError.self) { try await first.value }
    }
  }

  // MARK: Support

  private struct Project: Sendable {
    var data: TemporaryFolder
    var source: TemporaryFolder
    var fleet: WorkerFleet
    var controller: DeploymentController

    @discardableResult
    func deploy(
      _ path: String? = nil,
      only: Set<String>? = nil
    ) async throws -> DeploymentRecord {
      let path = try path ?? BuiltProduct.path("SampleFunctions")
      return try await controller.deploy(
        .executable(path: path, folder: source.path),
        builds: true,
        only: only,
        progress: { _ in }
      )
    }

    func call(_ name: String, _ body: String = #"{"data":null}"#) async throws -> String {
      let reply = try await fleet.invoke(
        InvocationRequest(
          id: "test",
          function: name,
          head: HTTPRequest(
            method: .post,
            scheme: nil,
            authority: nil,
            path: "/",
            headerFields: [.contentType: "application/json"]
          ),
          body: ByteBuffer(string: body)
        )
      )
      return String(buffer: try await reply.body.collect(upTo: 1 << 20))
    }
  }

  private func withProject(
    manifestTimeout: Duration = .seconds(30),
    _ body: (Project) async throws -> Void
  ) async throws {
    try await withProject(TemporaryFolder(), TemporaryFolder(), manifestTimeout, body)
  }

  /// Runs `body` with a fleet and waits until the fleet's processes are gone.
  private func withProject<Result: Sendable>(
    _ data: TemporaryFolder,
    _ source: TemporaryFolder,
    _ manifestTimeout: Duration = .seconds(30),
    _ body: (Project) async throws -> Result
  ) async throws -> Result {
    let fleet = WorkerFleet(log: FunctionLogStore(now: { Date() }), logger: .silent)
    let controller = DeploymentController(
      configuration: DeploymentController.Configuration(
        project: "demo",
        folder: data.path,
        environment: ["FIRESTORE_EMULATOR_HOST": "127.0.0.1:1", "PATH": "/usr/bin:/bin"]
      ),
      manifestTimeout: manifestTimeout,
      starts: StartWatch(folder: data.path, logger: .silent),
      now: { Date() },
      logger: .silent
    ) { try await fleet.replaceFunctions($0) }
    // Runs until `stop` below.
    let running = Task { try await fleet.run() }
    let project = Project(data: data, source: source, fleet: fleet, controller: controller)
    let result: Swift.Result<Result, any Error>
    do {
      result = .success(try await body(project))
    } catch {
      result = .failure(error)
    }
    fleet.stop(after: .zero)
    try await running.value
    return try result.get()
  }
}
