import Deployment
import Foundation
import StatusCodes
import Synchronization
import Testing
import TestSupport
import WorkerPool

/// Unusual binaries: scripts, and a package that does not compile.
///
/// No test starts a worker.
@Suite("Odd functions binaries", .timeLimit(.minutes(5)))
struct OddBinaryTests {
  private let source: TemporaryFolder
  private let data: TemporaryFolder
  private let served = Recorder()

  init() throws {
    source = try TemporaryFolder()
    data = try TemporaryFolder()
  }

  private func deploy(
    _ source: FunctionsSource,
    manifestTimeout: Duration = .seconds(30),
    validate: @escaping DeploymentController.Validate = { _ in }
  ) async throws -> DeploymentRecord {
    let controller = controller(manifestTimeout: manifestTimeout, validate: validate)
    return try await controller.deploy(source, builds: true) { _ in }
  }

  private func controller(
    manifestTimeout: Duration = .seconds(30),
    validate: @escaping DeploymentController.Validate = { _ in }
  ) -> DeploymentController {
    DeploymentController(
      configuration: .init(project: "demo-test", folder: data.path, environment: [:]),
      manifestTimeout: manifestTimeout,
      starts: StartWatch(folder: data.path, logger: .silent),
      now: { Date() },
      logger: .silent,
      validate: validate
    ) { [served] in served.add($0) }
  }

  private final class Recorder: Sendable {
    private let functions = Mutex<[[DeployedFunction]]>([])
    var all: [[DeployedFunction]] { functions.withLock { $0 } }
    func add(_ more: [DeployedFunction]) { functions.withLock { $0.append(more) } }
  }

  private func script(_ lines: String) throws -> FunctionsSource {
    try source.write("functions.sh", "#!/bin/sh\n\(lines)\n", isExecutable: true)
    return .executable(path: source.path("functions.sh"), folder: source.path)
  }

  /// Creates a binary with a callable for each name; the first one may read the secret `KEY`.
  private func describing(_ names: String...) throws -> FunctionsSource {
    let endpoints = names.map { name in
      let secrets = name == names.first ? #"[{"key":"KEY"}]"# : "[]"
      return """
        "\(name)":{"entryPoint":"f","region":["us-central1"],"platform":"gcfv2",\
        "callableTrigger":{},"secretEnvironmentVariables":\(secrets)}
        """
    }
    let manifest = #"{"specVersion":"v1alpha1","endpoints":{\#(endpoints.joined(separator: ","))}}"#
    return try script("echo '\(manifest)' > \"$FUNCTIONS_MANIFEST_OUTPUT_PATH\"")
  }

  private func current() throws -> String {
    try String(contentsOfFile: data.path("current"), encoding: .utf8)
  }

  @Test("A secret is seen only by the function that declares it")
  func secrets() async throws {
    try source.write(".secret.local", "KEY=hush\nOTHER=psst")
    _ = try await deploy(try describing("a", "b"))

    let functions = try #require(served.all.last)
    #expect(functions.map(\.name) == ["a", "b"])
    #expect(functions.map { $0.environment["KEY"] } == ["hush", nil])
    #expect(functions.allSatisfy { $0.environment["OTHER"] == nil })
  }

  @Test("A declared secret without a value of its own leaves the variable of its name")
  func secretAsVariable() async throws {
    try source.write(".env.local", "KEY=plain")
    _ = try await deploy(try describing("a"))

    #expect(served.all.last?.first?.environment["KEY"] == "plain")
  }

  @Test("A link is deployed as the binary that it leads to now")
  func link() async throws {
    _ = try describing("f")
    try FileManager.default.createSymbolicLink(
      atPath: source.path("link"),
      withDestinationPath: "functions.sh"
    )
    let record = try await deploy(.executable(path: source.path("link"), folder: source.path))

    let attributes = try FileManager.default.attributesOfItem(
      atPath: data.path("\(record.id)/functions")
    )
    #expect(attributes[.type] as? FileAttributeType == .typeRegular)
  }

  @Test(
    "A binary that writes no file, or one without end, is refused",
    arguments: ["mkfifo", "ln -s /dev/zero", "truncate -s 1T"]
  )
  func oddManifest(command: String) async throws {
    let source = try script("\(command) \"$FUNCTIONS_MANIFEST_OUTPUT_PATH\"")
    let error = await #expect(throws: DeploymentError.self) { try await deploy(source) }

    #expect(error?.message.contains("There is no file of at most 16 MiB at ") == true)
  }

  @Test("What others who read the functions refuse does not start, and what serves goes on")
  func refusedByOthers() async throws {
    let record = try await deploy(try describing("a"))
    let error = await #expect(throws: DeploymentError.self) {
      try await deploy(try describing("b")) { functions in
        throw StatusError.invalidArgument("No \(functions.keys.sorted()).")
      }
    }

    #expect(error?.message.hasSuffix(#"cannot be served. No ["b"]."#) == true)
    #expect(served.all.map { $0.map(\.name) } == [["a"]])
    #expect(try current() == record.id)
  }

  @Test(
    "A record that an earlier version or somebody else wrote is checked before it serves",
    arguments: [
      (#""platform" : "gcfv2""#, #""maxInstances": 9223372036854775807, "platform": "x""#),
      (#""callableTrigger" : {"#, #""scheduleTrigger": {"schedule": "* * * * * *"#),
      (#""platform" : "gcfv2""#, #""timeoutSeconds": 1e300, "platform": "x""#),
      (#""id" : ""#, #""id" : "x"#), (#""id" : ""#, #""binaries": {"a": "../.."}, "id" : ""#),
      ("v1alpha1", "v2"),
    ]
  )
  func hostileRecord(text: String, other: String) async throws {
    let record = try await deploy(try describing("a"))
    let path = data.path("\(record.id)/deployment.json")
    let whole = try String(contentsOfFile: path, encoding: .utf8)
    try #require(whole.contains(text), "\(whole)")
    try data.write(
      "\(record.id)/deployment.json",
      whole.replacing(text, with: other, maxReplacements: 1)
    )

    await #expect(throws: DeploymentError.self) { try await controller().restore() }
    await #expect(throws: DeploymentError.self) { try await controller().rollBack(to: record.id) }
    #expect(served.all.count == 1)
  }

  @Test("A binary that hangs is ended when its time is over, and what it said is shown")
  func hangs() async throws {
    let record = try await deploy(try describing("f"))
    let hanging = try script("/bin/sleep 3600 & echo \"waiting for $!\"; wait")
    // On a machine that stalls, its time may be over before it says anything.
    await eventually("the binary's words are shown") {
      let error = await #expect(throws: DeploymentError.self) {
        try await deploy(hanging, manifestTimeout: .seconds(2))
      }
      let message = error?.message ?? ""
      #expect(message.contains("did not describe its functions within"))
      return message.contains("waiting for ")
    }

    #expect(try current() == record.id)
    let left = try FileManager.default.contentsOfDirectory(atPath: data.path)
    #expect(Set(left) == ["current", "starting", record.id])
  }

  @Test(
    "A binary that writes without end instead of its manifest is ended, and its words are shown",
    arguments: [
      "yes many words \(String(repeating: "x", count: 1_000))",
      "yes many words \(String(repeating: "x", count: 1_000)) 1>&2", "cat /dev/zero",
    ]
  )
  func floods(command: String) async throws {
    let source = try script(command)
    // The output limit ends it, not the time limit.
    let error = await #expect(throws: DeploymentError.self) {
      try await deploy(source, manifestTimeout: .seconds(240))
    }

    let message = error?.message ?? ""
    #expect(message.contains("it wrote over 1 MiB of output while it was asked for its functions"))
    #expect(message.contains("many words") == command.contains("many words"))
    #expect(message.utf8.count < 70_000)
  }

  @Test("A build that fails shows the compiler's error and keeps the old deployment")
  func buildFails() async throws {
    let record = try await deploy(try describing("f"))
    try source.write(
      "Package.swift",
      """
      // swift-tools-version: 6.0
      import PackageDescription
      let package = Package(name: "broken", targets: [.executableTarget(name: "Broken")])
      """
    )
    try FileManager.default.createDirectory(
      atPath: source.path("Sources/Broken"),
      withIntermediateDirectories: true
    )
    try source.write("Sources/Broken/main.swift", "let number: Int = \"no number\"\n")
    let error = await #expect(throws: DeploymentError.self) {
      try await deploy(.package(path: source.path, product: nil, configuration: "debug"))
    }

    let message = error?.message ?? ""
    #expect(message.hasPrefix("The build of Broken failed:"), "\(message)")
    #expect(message.contains("cannot convert value of type 'String'"), "\(message)")
    #expect(try current() == record.id)
  }
}
