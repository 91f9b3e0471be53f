import Foundation
import PackagePlugin

/// `swift package tidy`: holds the sources to the edges and floors that the house declares.
///
/// The compiler accepts an import of any module that happens to be built; this does not. Checked
/// are, for every target: each import is a declared dependency, each edge leads to a lower floor,
/// emulator, triggers and functions do not import one another, and every Swift file below the
/// house's folders belongs to a target. Prints one line a finding and fails when there is any.
@main
struct Tidy: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) throws {
    let root = context.package.directoryURL
    let targets = context.package.targets.compactMap { $0 as? any SourceModuleTarget }
    var findings = strayFiles(below: root, ownedBy: targets)
    for target in targets {
      findings += undeclaredImports(of: target, root: root)
      findings += upwardEdges(of: target, root: root)
    }
    guard findings.isEmpty else {
      for finding in findings.sorted() { Diagnostics.error(finding) }
      return
    }
    print("tidy: \(targets.count) targets, no findings")
  }

  private func undeclaredImports(of target: any SourceModuleTarget, root: URL) -> [String] {
    var allowed = House.toolchainModules.union([target.name])
    for dependency in target.dependencies {
      switch dependency {
      case .target(let room): allowed.insert(room.name)
      case .product(let product): allowed.formUnion(product.targets.map(\.name))
      @unknown default: break
      }
    }
    var findings: [String] = []
    for file in target.sourceFiles where file.type == .source && file.url.pathExtension == "swift" {
      guard let text = try? String(contentsOf: file.url, encoding: .utf8) else {
        findings.append("\(relative(file.url, to: root)): unreadable or not UTF-8")
        continue
      }
      // What stands in a multi-line string is data, such as a package that a test writes.
      var isInString = false
      for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
        .enumerated()
      {
        if line.ranges(of: "\"\"\"").count % 2 == 1 { isInString.toggle() }
        guard !isInString, let module = importedModule(line), !allowed.contains(module) else {
          continue
        }
        findings.append(
          "\(relative(file.url, to: root)):\(number + 1): \(target.name) imports \(module), "
            + "which Package.swift does not list among its dependencies"
        )
      }
    }
    return findings
  }

  private func upwardEdges(of target: any SourceModuleTarget, root: URL) -> [String] {
    let folder = relative(target.directoryURL, to: root)
    if folder.hasPrefix("Tests") || folder.hasPrefix(House.templates) { return [] }
    guard let floor = House.floors[target.name] else {
      return ["Package.swift: \(target.name) has no floor; add it to House.floors in Tidy.swift"]
    }
    var findings: [String] = []
    for case .target(let room) in target.dependencies {
      if let other = House.floors[room.name], other >= floor {
        findings.append(
          "Package.swift: \(target.name) (floor \(floor)) imports \(room.name) (floor \(other)); "
            + "rooms import lower floors only"
        )
      }
      let wing = folder.prefix { $0 != "/" }
      let otherWing = relative(room.directoryURL, to: root).prefix { $0 != "/" }
      if House.wings.contains(String(wing)), House.wings.contains(String(otherWing)),
        wing != otherWing
      {
        findings.append(
          "Package.swift: \(target.name) in \(wing)/ imports \(room.name) in \(otherWing)/; "
            + "they meet only through Sources/"
        )
      }
    }
    return findings
  }

  private func strayFiles(below root: URL, ownedBy targets: [any SourceModuleTarget]) -> [String] {
    let owned = Set(
      targets.flatMap { target in
        target.sourceFiles.map { $0.url.standardizedFileURL.path }
      }
    )
    var findings: [String] = []
    for folder in House.wings.union(["Sources", "Tests"]) {
      let files = FileManager.default.enumerator(
        at: root.appending(path: folder),
        includingPropertiesForKeys: nil
      )
      while let file = files?.nextObject() as? URL {
        let path = file.standardizedFileURL.path
        guard path.hasSuffix(".swift"), !path.contains("/Sources/Plugins/"),
          !owned.contains(path)
        else { continue }
        findings.append("\(relative(file, to: root)): no target owns this file")
      }
    }
    return findings
  }

  /// The module of an import line, without attributes, access level, kind and submodule.
  private func importedModule(_ line: Substring) -> String? {
    var words = line.split(separator: " ").filter { !$0.hasPrefix("@") }
    if let first = words.first, House.accessLevels.contains(String(first)) { words.removeFirst() }
    guard words.first == "import", words.count >= 2 else { return nil }
    let path = House.importKinds.contains(String(words[1])) && words.count > 2 ? words[2] : words[1]
    return path.split(separator: ".").first.map(String.init)
  }

  private func relative(_ url: URL, to root: URL) -> String {
    let path = url.standardizedFileURL.path
    let prefix = root.standardizedFileURL.path + "/"
    return path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : path
  }
}

/// The plan of the house; the README shows the same table.
private enum House {
  /// What `hearth init` writes: a stranger's package, which has no floor here.
  static let templates = "Sources/HearthCLI/Templates"
  static let wings: Set<String> = ["emulator", "triggers", "functions"]

  static let floors: [String: Int] = [
    "CSQLite": 0, "CCurl": 0, "CZlib": 0, "CKernels": 0,
    "DocumentModel": 1, "RuntimeSupport": 1, "FirestoreProtos": 1,
    "Identity": 2, "Events": 2, "StorageEngine": 2, "OutboundHTTP": 2,
    "QueryEngine": 3, "VectorIndex": 3, "Invocation": 3, "EventLog": 3, "HTTPSupport": 3,
    "GRPCServer": 3, "FirestoreWire": 3, "SQLiteStorage": 3, "Schedules": 3,
    "GoogleAccess": 3,
    "DocumentStore": 4, "TriggerMatching": 4, "WorkerPool": 4, "FirestoreClient": 4,
    "DataExport": 5, "FirestoreEmulator": 5, "VectorEmulator": 5, "TriggerDelivery": 5,
    "TaskQueues": 5,
    "FunctionsGateway": 5,
    "FunctionsRuntime": 5, "Deployment": 5,
    "EmulatorSuite": 6,
    "HearthCLI": 7, "FunctionsTesting": 7,
    // The application stands beside the house: its floors count from what it imports.
    "PsstModels": 5, "PsstServices": 6, "PsstFunctions": 7, "PsstWorker": 8,
  ]

  static let accessLevels: Set<String> = [
    "public", "package", "internal", "fileprivate", "private",
  ]
  static let importKinds: Set<String> = [
    "struct", "class", "enum", "protocol", "typealias", "func", "let", "var",
  ]
  static let toolchainModules: Set<String> = [
    "Swift", "Foundation", "FoundationEssentials", "Synchronization", "Dispatch", "Testing",
    "Glibc", "Musl", "Darwin", "System", "Android", "_Concurrency",
  ]
}
