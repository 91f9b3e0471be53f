import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Deployment

/// Builds with a script in place of `swift`.
@Suite("Functions builder")
struct FunctionsBuilderTests {
  private let source: TemporaryFolder

  init() throws {
    source = try TemporaryFolder()
    try source.write("Package.swift", "")
    try source.write("products", #"{"name":"one","type":{"executable":null}}"#)
    try source.write("one", "", isExecutable: true)
    let script = """
      #!/bin/sh
      case "$*" in
      *describe*)
        echo 'warning: something' >&2
        echo '{'
        i=0; while [ $i -lt 1000 ]; do echo; i=$((i + 1)); done
        echo "\\"products\\":[$(cat \(source.path("products")))]}" ;;
      *--show-bin-path*) echo \(source.path); echo 'warning: /other' >&2 ;;
      *)
        echo Compiling
        case "$*" in *wrong*) echo "error: no product named 'wrong'" >&2; exit 1 ;; esac
        [ -e \(source.path("fail")) ] && { echo 'x.swift:1:1: error: no such thing'; exit 1; }
        head -c 300000 /dev/zero | tr '\\0' x
        exit 0 ;;
      esac
      """
    try source.write("swift", script, isExecutable: true)
  }

  private func build(
    product: String? = nil,
    builds: Bool = true,
    progress: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws -> String {
    try await BinaryBuilder(swift: ChildProcess.program(source.path("swift"))).binary(
      of: .package(path: source.path, product: product, configuration: "debug"),
      builds: builds,
      progress: progress
    )
  }

  @Test("The only executable is built, and a line of any length does not stop the build")
  func builds() async throws {
    let lines = Mutex<[String]>([])
    let path = try await build { line in lines.withLock { $0.append(line) } }

    #expect(path == source.path("one"))
    #expect(lines.withLock { $0.first } == "Compiling")
    #expect(lines.withLock { $0.count } == 2)
  }

  @Test("Without building, the binary is taken as it is, or its absence is reported")
  func takes() async throws {
    #expect(try await build(builds: false) == source.path("one"))
    let error = await #expect(throws: DeploymentError.self) {
      try await build(product: "other", builds: false)
    }
    #expect(error?.message.contains("Deploy without --no-build") == true)
  }

  @Test("A failed build reports the compiler's errors")
  func fails() async throws {
    try source.write("fail", "")
    let error = await #expect(throws: DeploymentError.self) { try await build() }

    #expect(error?.message == "The build of one failed:\nx.swift:1:1: error: no such thing")
  }

  @Test("A product that the package lacks is reported with those that it has")
  func wrongProduct() async throws {
    let error = await #expect(throws: DeploymentError.self) { try await build(product: "wrong") }

    #expect(error?.message.contains("no product wrong, which firebase.json names") == true)
    #expect(error?.message.hasSuffix("its executable products: one.") == true)
  }

  @Test("Several executables need a choice, none needs one to be added")
  func ambiguous() async throws {
    let one = #"{"name":"one","type":{"executable":null}}"#
    try source.write("products", "\(one),\(one.replacing("one", with: "two"))")
    let several = await #expect(throws: DeploymentError.self) { try await build() }
    #expect(several?.message.contains("2 executable products (one, two)") == true)

    try source.write("products", #"{"name":"L","type":{"library":["automatic"]}}"#)
    await #expect(throws: DeploymentError.self) { try await build() }
  }

  @Test("A folder without a package says what to correct")
  func noPackage() async throws {
    try FileManager.default.removeItem(atPath: source.path("Package.swift"))
    let error = await #expect(throws: DeploymentError.self) { try await build() }

    #expect(error?.message.contains("correct functions.source in firebase.json") == true)
  }
}
