import ArgumentParser
import EmulatorSuite
import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// `hearth doctor`: checks what the suite needs and says how to mend what is wrong.
struct Doctor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check toolchain, files, ports and deliveries, and say how to mend each.",
    discussion: """
      Exit code 0 when all is well, 1 when something needs mending.

        hearth doctor
      """
  )

  @OptionGroup var suite: SuiteLocation

  func run() async throws {
    var findings = try environment()
    let running = try? await suite.connect()
    if let running {
      findings += try await deliveries(of: running)
    } else {
      findings += ports()
    }
    Terminal.print(
      Terminal.table(
        ["CHECK", "STATE", "DETAIL"],
        findings.map { [$0.check, $0.state.rawValue, $0.detail] }
      )
    )
    let broken = findings.count { $0.state == .mend }
    guard broken == 0 else {
      throw CommandFailure("\(broken) thing\(broken == 1 ? "" : "s") to mend.")
    }
  }

  private struct Finding {
    var check: String
    var state: State
    var detail: String

    enum State: String {
      case ok
      /// Nothing is wrong, but a person may have meant something else.
      case note
      case mend = "MEND"
    }

    init(check: String, state: State, detail: String) {
      self.check = check
      self.state = state
      self.detail = detail
    }

    init(check: String, isWell: Bool, detail: String) {
      self.init(check: check, state: isWell ? .ok : .mend, detail: detail)
    }
  }

  private func environment() throws -> [Finding] {
    var findings: [Finding] = []
    let swift = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":")
      .map { "\($0)/swift" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    findings.append(
      Finding(
        check: "swift",
        isWell: swift != nil,
        detail: swift ?? "not on the PATH; install it from https://www.swift.org/install"
      )
    )
    let files = try ProjectFiles(folder: FileManager.default.currentDirectoryPath)
    if let source = files.functionsSource {
      let manifest = source + "/Package.swift"
      let exists = FileManager.default.fileExists(atPath: manifest)
      findings.append(
        Finding(
          check: "functions",
          isWell: exists,
          detail: exists
            ? "\(source)\(files.functionsProduct.map { " (\($0))" } ?? "")"
            : "\(manifest) is missing; correct functions.source in firebase.json"
        )
      )
    } else {
      findings.append(
        Finding(
          check: "functions",
          state: .note,
          detail: "no functions in a firebase.json of this folder; run doctor in your project's "
            + "folder, or add {\"functions\": {\"source\": \".\"}}"
        )
      )
    }
    findings.append(
      Finding(
        check: "project",
        isWell: true,
        detail: suite.project ?? files.defaultProject ?? "demo-psst (no .firebaserc)"
      )
    )
    findings.append(dataFolder())
    for (name, isSecret) in [
      ("FIREBASE_EMULATOR_HUB", false), ("FIRESTORE_EMULATOR_HOST", false),
      ("OPENAI_API_KEY", true), ("PINECONE_API_KEY", true),
    ] {
      let value = ProcessInfo.processInfo.environment[name]
      findings.append(
        Finding(
          check: name,
          isWell: true,
          detail: value.map { isSecret ? "set" : "\($0) (environment)" } ?? "not set"
        )
      )
    }
    return findings
  }

  private func dataFolder() -> Finding {
    let path = suite.dataFolder
    guard FileManager.default.fileExists(atPath: path) else {
      return Finding(
        check: "data folder",
        isWell: true,
        detail: "\(path) is made by the first start"
      )
    }
    let isWritable = FileManager.default.isWritableFile(atPath: path)
    return Finding(
      check: "data folder",
      isWell: isWritable,
      detail: isWritable ? path : "\(path) is not writable; mend it with: chmod -R u+rwX \(path)"
    )
  }

  /// Whether each default port can be bound; asked only while no suite runs.
  private func ports() -> [Finding] {
    SuiteConfiguration.defaultPorts.sorted { $0.value < $1.value }.map { service, port in
      let isFree = Self.canBind(port)
      return Finding(
        check: "port \(port)",
        isWell: isFree,
        detail: isFree
          ? "free for \(service.title)"
          : "in use by another program; end it, or start with --\(service.rawValue)-port"
      )
    }
  }

  private static func canBind(_ port: Int) -> Bool {
    #if canImport(Glibc)
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var reuse: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  private func deliveries(of client: ControlClient) async throws -> [Finding] {
    let suite = try await client.get("/hearth/v1/suite", as: SuiteDescription.self)
    let functions = try await client.get("/hearth/v1/functions", as: [FunctionDescription].self)
    var findings = [
      Finding(
        check: "suite",
        isWell: true,
        detail: "running at \(client.address), pid \(suite.pid)"
      ),
      Finding(
        check: "storage",
        isWell: suite.problem == nil,
        detail: suite.problem ?? "takes writes"
      ),
      Finding(
        check: "deployment",
        isWell: !functions.isEmpty,
        detail: functions.isEmpty
          ? "no functions; run `hearth deploy`" : "\(functions.count) functions"
      ),
    ]
    for function in functions {
      if let trigger = function.trigger {
        findings.append(Finding(check: function.name, isWell: true, detail: trigger))
      }
    }
    for state in ["failed", "dead"] {
      let stuck = try await client.get(
        "/hearth/v1/events?state=\(state)&limit=1000",
        as: [EventDescription].self
      )
      findings.append(
        Finding(
          check: "\(state) events",
          isWell: stuck.isEmpty,
          detail: stuck.isEmpty
            ? "none" : "\(stuck.count); see `hearth events list --state \(state)`"
        )
      )
    }
    return findings
  }
}
