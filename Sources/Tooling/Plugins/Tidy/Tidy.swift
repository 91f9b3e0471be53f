import Foundation
import PackagePlugin

/// The command `swift package tidy`, which checks the architecture of the package.
///
/// The compiler accepts an import of any module that happens to be built. This command checks for
/// every target that each import is a declared dependency, that each dependency is imported, and
/// that each dependency is in a lower layer. It checks that emulator, triggers and functions do not
/// import one another, and that the layers are the ones in `docs/architecture.md`. It checks that
/// no type has the name of its module or of another visible type, that every Swift file belongs to
/// a target, and that `Sources/README.md` has each module once and names files that exist. It
/// checks the length of comments, which the formatter does not wrap, and that no task local has a
/// function type. It checks that a comment gives the reason for what needs one: a task that yields,
/// a call that blocks its thread, and outside tests an error that is dropped and a stream without a
/// bound. It checks that log messages are constant. It prints one line per finding and fails if
/// there are any.
@main
struct Tidy: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) throws {
    let root = context.package.directoryURL
    let targets = context.package.targets.compactMap { $0 as? any SourceModuleTarget }
    guard targets.contains(where: { $0.name == "Benchmarks" }) else {
      Diagnostics.error("run `make tidy`, or set HEARTH_ALL_TARGETS, to check every target")
      return
    }
    let sources = targets.map { Sources($0, root: root) }
    var findings = strayFiles(below: root, ownedBy: targets) + wrongLayers(root: root)
    for source in sources {
      findings += source.unreadable
      findings += undeclaredImports(in: source)
      findings += unusedDependencies(of: source)
      findings += upwardDependencies(of: source.target, root: root)
    }
    findings += ambiguousNames(in: sources)
    findings += wrongMap(of: targets, root: root)
    findings += sources.flatMap { $0.files.flatMap(\.longComments) }
    findings += sources.flatMap { $0.files.flatMap(\.usageFindings) }
    findings += functionTaskLocals(in: sources)
    guard findings.isEmpty else {
      for finding in findings.sorted() { Diagnostics.error(finding) }
      return
    }
    print("tidy: \(targets.count) targets, no findings")
  }

  private func undeclaredImports(in source: Sources) -> [String] {
    let target = source.target
    let allowed = source.dependencies.reduce(
      into: Architecture.toolchainModules.union([target.name])
    ) { $0.formUnion($1.modules) }
    return source.files.flatMap { file in
      file.imports.filter { !allowed.contains($0.module) }.map { found in
        "\(file.path):\(found.line): \(target.name) imports \(found.module), which Package.swift does "
          + "not list among its dependencies"
      }
    }
  }

  /// Returns the dependencies that no file imports.
  ///
  /// Tests are exempt because they inherit the dependencies of the modules that they test.
  private func unusedDependencies(of source: Sources) -> [String] {
    guard source.target.kind != .test else { return [] }
    let imported = Set(source.files.flatMap { $0.imports.map(\.module) })
    return source.dependencies.filter { $0.modules.isDisjoint(with: imported) }.map { listed in
      "Package.swift: \(source.target.name) lists \(listed.name), which none of its files imports"
    }
  }

  /// Finds types that have the name of their module, and types with equal names used in one file.
  private func ambiguousNames(in sources: [Sources]) -> [String] {
    let typesOfModules = Dictionary(
      sources.map { ($0.target.name, Set($0.files.flatMap(\.sharedTypes))) }
    ) { $0.union($1) }
    return sources.flatMap { source in
      let name = source.target.name
      let own = Set(source.files.flatMap(\.types))
      var findings: [String] = []
      if own.contains(name) {
        findings.append("\(source.folder): the type \(name) has the name of its module; rename it")
      }
      for file in source.files {
        var seen = Dictionary(own.map { ($0, name) }) { first, _ in first }
        for module in Set(file.imports.map(\.module)).sorted() where module != name {
          for type in (typesOfModules[module] ?? []).sorted() {
            if let other = seen.updateValue(module, forKey: type), file.mentions(type) {
              findings.append("\(file.path): \(type) is a type of \(other) and of \(module)")
            }
          }
        }
      }
      return findings
    }
  }

  /// Finds task locals of a function type, on which optimized code of Swift 6.3 crashes.
  ///
  /// `withValue` gets no metadata of the type. A function type wrapped in a struct works, and so do
  /// function types in other generic containers.
  private func functionTaskLocals(in sources: [Sources]) -> [String] {
    let files = sources.flatMap(\.files)
    let aliases = Set(files.flatMap(\.functionAliases))
    return files.flatMap { file in
      file.taskLocals.filter { local in
        local.type.contains("->") || aliases.contains { local.type.hasPrefix($0) }
      }.map { local in
        "\(file.path):\(local.line): the task local has a function type, on which optimized code "
          + "crashes; wrap it in a struct"
      }
    }
  }

  /// Finds differences between the layers in the documentation and those checked here.
  private func wrongLayers(root: URL) -> [String] {
    let page = "docs/architecture.md"
    guard let text = try? String(contentsOf: root.appending(path: page), encoding: .utf8) else {
      return ["\(page): is missing, or not UTF-8; it shows the layers"]
    }
    var shown: [String: Int] = [:]
    for line in text.split(separator: "\n") {
      let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
      guard cells.count >= 2, let layer = cells[0].first?.wholeNumberValue else { continue }
      for (index, word) in cells[1].split(separator: "`", omittingEmptySubsequences: false)
        .enumerated() where index % 2 == 1
      {
        shown[String(word)] = layer
      }
    }
    let checked = Architecture.layers.filter { !Architecture.application.contains($0.key) }
    return Set(shown.keys).union(checked.keys).filter { shown[$0] != checked[$0] }.map { module in
      "\(page): \(module) is in layer \(shown[module].map(String.init) ?? "none") there, and in "
        + "\(checked[module].map(String.init) ?? "none") in Architecture.layers of Tidy.swift"
    }
  }

  /// Finds modules that the map lacks or has twice, and files in the map that do not exist.
  private func wrongMap(of targets: [any SourceModuleTarget], root: URL) -> [String] {
    let page = "Sources/README.md"
    guard let text = try? String(contentsOf: root.appending(path: page), encoding: .utf8) else {
      return ["\(page): is missing, or not UTF-8; it maps the modules"]
    }
    func quoted(_ cell: Substring) -> [Substring] {
      cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
        .filter { $0.offset % 2 == 1 }.map(\.element)
    }
    let folders = Dictionary(targets.map { ($0.name, $0.directoryURL) }) { first, _ in first }
    var rows: [String: Int] = [:]
    var findings: [String] = []
    for line in text.split(separator: "\n") where line.hasPrefix("| `") {
      let cells = line.split(separator: "|")
      let modules = quoted(cells[0]).map { String($0.split(separator: "/").last ?? $0) }
      for module in modules { rows[module, default: 0] += 1 }
      guard modules.count == 1, cells.count >= 3, let folder = folders[modules[0]] else { continue }
      for file in quoted(cells[cells.count - 1]) where file.contains(".") && !file.contains(" ") {
        let path = folder.appending(path: String(file)).path
        if !FileManager.default.fileExists(atPath: path) {
          findings.append("\(page): \(modules[0]) has no file \(file)")
        }
      }
    }
    return findings
      + Architecture.layers.keys.filter { rows[$0] != 1 }.map { module in
        "\(page): maps \(module) \(rows[module] ?? 0) times; it should map each module once"
      }
  }

  private func upwardDependencies(of target: any SourceModuleTarget, root: URL) -> [String] {
    let folder = target.directoryURL.path(relativeTo: root)
    if folder.hasPrefix("Tests") || folder.hasPrefix(Architecture.templates) { return [] }
    guard let layer = Architecture.layers[target.name] else {
      return [
        "Package.swift: \(target.name) has no layer; add it to Architecture.layers in Tidy.swift"
      ]
    }
    var findings: [String] = []
    for case .target(let module) in target.dependencies {
      if let other = Architecture.layers[module.name], other >= layer {
        findings.append(
          "Package.swift: \(target.name) (layer \(layer)) imports \(module.name) (layer \(other)); "
            + "modules import lower layers only"
        )
      }
      let area = folder.prefix { $0 != "/" }
      let otherArea = module.directoryURL.path(relativeTo: root).prefix { $0 != "/" }
      if Architecture.areas.contains(String(area)), Architecture.areas.contains(String(otherArea)),
        area != otherArea
      {
        findings.append(
          "Package.swift: \(target.name) in \(area)/ imports \(module.name) in \(otherArea)/; "
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
    for folder in Architecture.areas.union(["Sources", "Tests"]) {
      let files = FileManager.default.enumerator(
        at: root.appending(path: folder),
        includingPropertiesForKeys: nil
      )
      while let file = files?.nextObject() as? URL {
        let path = file.standardizedFileURL.path
        guard path.hasSuffix(".swift"), !path.contains("/Sources/Tooling/Plugins/"),
          !owned.contains(path)
        else { continue }
        findings.append("\(file.path(relativeTo: root)): no target owns this file")
      }
    }
    return findings
  }
}

/// The Swift files of a target, each read once.
private struct Sources {
  let target: any SourceModuleTarget
  let folder: String
  var files: [SourceFile] = []
  var unreadable: [String] = []

  init(_ target: any SourceModuleTarget, root: URL) {
    self.target = target
    folder = target.directoryURL.path(relativeTo: root)
    for file in target.sourceFiles where file.type == .source && file.url.pathExtension == "swift" {
      let path = file.url.path(relativeTo: root)
      if let text = try? String(contentsOf: file.url, encoding: .utf8) {
        files.append(SourceFile(path: path, text: text))
      } else {
        unreadable.append("\(path): unreadable or not UTF-8")
      }
    }
  }

  /// The dependencies that `Package.swift` lists, with the modules that each provides.
  var dependencies: [(name: String, modules: Set<String>)] {
    target.dependencies.compactMap { dependency in
      switch dependency {
      case .target(let module): (module.name, [module.name])
      case .product(let product): (product.name, Set(product.targets.map(\.name)))
      @unknown default: nil
      }
    }
  }
}

/// The properties of a file that the checks need.
private struct SourceFile {
  let path: String
  private(set) var imports: [(module: String, line: Int)] = []
  /// The top-level types of the file; `sharedTypes` are those visible to other modules.
  private(set) var types: Set<String> = []
  private(set) var sharedTypes: Set<String> = []
  /// A finding for each comment line that is too long.
  private(set) var longComments: [String] = []
  /// The declared types of the task locals, with the rest of their lines.
  private(set) var taskLocals: [(type: String, line: Int)] = []
  /// The names of the function types.
  private(set) var functionAliases: Set<String> = []
  /// A finding for each use that lacks its reason, and for each log message with values in it.
  private(set) var usageFindings: [String] = []
  private var followsTaskLocal = false
  private let text: String

  init(path: String, text: String) {
    self.path = path
    self.text = text
    // The content of a multi-line string is data, such as a package that a test writes.
    var isInString = false
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for (number, line) in lines.enumerated() {
      if line.ranges(of: "\"\"\"").count % 2 == 1 { isInString.toggle() }
      guard !isInString else { continue }
      if line.count > Architecture.columnsMax, line.drop(while: { $0 == " " }).hasPrefix("//"),
        !path.hasSuffix(".pb.swift")
      {
        longComments.append("\(path):\(number + 1): the comment has \(line.count) columns")
      }
      if let module = Self.importedModule(line) { imports.append((module, number + 1)) }
      readFunctionTypes(line, number + 1)
      readUses(in: lines, at: number)
      // Nested types are indented and are used only through their parents.
      if let first = line.first, first != " ", let (type, isShared) = Self.declaredType(line) {
        types.insert(type)
        if isShared { sharedTypes.insert(type) }
      }
    }
  }

  /// Records a task local, whose attribute may stand on the line before, or an alias of a function.
  private mutating func readFunctionTypes(_ line: Substring, _ number: Int) {
    let code = line.drop { $0 == " " }
    if code.hasPrefix("@TaskLocal") || followsTaskLocal, let colon = code.firstIndex(of: ":") {
      taskLocals.append((code[colon...].dropFirst().drop { $0 == " " }.description, number))
    }
    followsTaskLocal = code == "@TaskLocal"
    if let words = code.firstRange(of: "typealias "), let equals = code.firstIndex(of: "="),
      code.contains("->")
    {
      let name = code[words.upperBound..<equals].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
      functionAliases.insert(String(name))
    }
  }

  /// Records what lacks its reason on a line, and a log message with values that begins there.
  private mutating func readUses(in lines: [Substring], at number: Int) {
    let code = lines[number].drop { $0 == " " }
    guard !code.hasPrefix("//"), !path.hasSuffix(".pb.swift") else { return }
    let isTest = path.hasPrefix("Tests/")
    for rule in Architecture.reasoned where !(isTest && rule.exemptsTests) {
      if rule.applies(code), !Self.hasReason(lines, number, rule) {
        usageFindings.append("\(path):\(number + 1): \(rule.finding)")
      }
    }
    guard !isTest else { return }
    // A call is read together with the lines after it, where its arguments may be.
    let call = lines[number...].prefix(Architecture.callLinesMax).joined(separator: "\n")
    if code.contains(".makeStream("), !call.contains("bufferingPolicy: ") {
      usageFindings.append("\(path):\(number + 1): the stream states no bufferingPolicy")
    }
    for level in Architecture.logLevels {
      guard let start = call.prefix(lines[number].count).firstRange(of: "ogger.\(level)(") else {
        continue
      }
      let message = call[start.upperBound...].drop { $0.isWhitespace }
      let end = message.firstRange(of: "metadata:")?.lowerBound ?? message.firstIndex(of: "\n")
      if !message.hasPrefix("\"") || message[..<(end ?? message.endIndex)].contains("\\("),
        !Self.hasReason(lines, number)
      {
        usageFindings.append(
          "\(path):\(number + 1): the log message is not constant; put values into its metadata, "
            + "or say why not"
        )
      }
    }
  }

  /// True if a comment is on a line or in the few lines before it, up to an empty one.
  ///
  /// One comment is enough for several uses of a kind in a row, and none is needed in `blocking`,
  /// which runs its closure on a thread of its own.
  private static func hasReason(
    _ lines: [Substring],
    _ number: Int,
    _ rule: Architecture.Reasoned? = nil
  ) -> Bool {
    if lines[number].contains(" // ") || lines[number].contains("blocking") { return true }
    var left = Architecture.reasonLinesMax
    for line in lines[..<number].reversed() where left > 0 {
      let code = line.drop { $0 == " " }
      if code.isEmpty { return false }
      if code.hasPrefix("//") || code.contains("blocking {") { return true }
      left = rule?.applies(code) == true ? Architecture.reasonLinesMax : left - 1
    }
    return false
  }

  /// Returns true if the file uses a name as a word of its own.
  func mentions(_ name: String) -> Bool {
    text.ranges(of: name).contains { range in
      let before =
        range.lowerBound > text.startIndex
        ? text[text.index(before: range.lowerBound)] : " "
      let after = range.upperBound < text.endIndex ? text[range.upperBound] : " "
      return ![before, after].contains { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
    }
  }

  /// Returns the module of an import line, without attributes, access level, kind and submodule.
  private static func importedModule(_ line: Substring) -> String? {
    var words = line.split(separator: " ").filter { !$0.hasPrefix("@") }
    if let first = words.first, Architecture.accessLevels.contains(String(first)) {
      words.removeFirst()
    }
    guard words.first == "import", words.count >= 2 else { return nil }
    let path =
      Architecture.importKinds.contains(String(words[1])) && words.count > 2 ? words[2] : words[1]
    return path.split(separator: ".").first.map(String.init)
  }

  /// Returns the type that a line declares; `isShared` is true if other modules can see it.
  private static func declaredType(_ line: Substring) -> (name: String, isShared: Bool)? {
    let words = line.split(separator: " ").filter { !$0.hasPrefix("@") && $0 != "final" }
    guard let kind = words.firstIndex(where: { Architecture.typeKinds.contains(String($0)) }),
      kind < 3,
      kind + 1 < words.count, words[..<kind].allSatisfy({ !$0.hasPrefix("//") }),
      !words[..<kind].contains("private"), !words[..<kind].contains("fileprivate")
    else { return nil }
    let name = words[kind + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
    let isShared = words[..<kind].contains("public") || words[..<kind].contains("package")
    return (String(name), isShared)
  }
}

extension Substring {
  /// True if the code calls a function of C, not a method or a function of Swift of that name.
  fileprivate func calls(_ function: String) -> Bool {
    uses(function + "(") && !contains("await ") && !contains("func ")
  }

  /// True if the text is in the code, and not as the end of a longer word or a method.
  fileprivate func uses(_ text: String) -> Bool {
    ranges(of: text).contains { range in
      guard range.lowerBound > startIndex else { return true }
      let before = self[index(before: range.lowerBound)]
      return !(before.isLetter || before.isNumber || "_.\"".contains(before))
    }
  }
}

extension URL {
  /// Returns the path below a folder, or the whole path of a file elsewhere.
  fileprivate func path(relativeTo root: URL) -> String {
    let path = standardizedFileURL.path
    let prefix = root.standardizedFileURL.path + "/"
    return path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : path
  }
}

/// The rules of the architecture; `docs/architecture.md` shows the layers as a table.
private enum Architecture {
  /// The output of `hearth init`, which is an independent package and has no layer here.
  static let templates = "Sources/Server/HearthCLI/Templates"
  static let areas: Set<String> = ["emulator", "triggers", "functions"]
  /// The longest line of a comment, as in `.swift-format`.
  static let columnsMax = 100

  /// A use that needs a reason: a comment on its line or just before it.
  struct Reasoned {
    var finding: String
    var exemptsTests = false
    var applies: (Substring) -> Bool
  }

  static var reasoned: [Reasoned] {
    [
      Reasoned(finding: "a task yields; wait for an event instead, or say why") {
        $0.contains("Task.yield()")
      },
      Reasoned(finding: "a call blocks its thread; say why that is none of the shared pool") {
        code in
        guard !code.contains("LOCK_NB") else { return false }
        return blockingUses.contains { code.contains($0) }
          || blockingFunctions.contains { code.calls($0) }
      },
      Reasoned(finding: "an error is dropped; handle it, or say why", exemptsTests: true) {
        $0.uses("try?")
      },
      Reasoned(finding: "a stream has no bound; say what bounds it", exemptsTests: true) {
        $0.contains("bufferingPolicy: .unbounded")
      },
    ]
  }
  /// The number of lines before a use in which its reason is looked for.
  static let reasonLinesMax = 3
  /// The number of lines of a call in which an argument is looked for.
  static let callLinesMax = 4
  static let logLevels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]

  static let blockingUses = [
    "DispatchSemaphore(", "DispatchGroup(", "NSCondition(", "Thread.sleep(", ".waitUntilExit()",
    ".readDataToEndOfFile()", ".availableData", ".syncShutdownGracefully(",
  ]
  /// Functions of C, which may have methods of the same name.
  static let blockingFunctions = [
    "sleep", "usleep", "nanosleep", "waitpid", "flock", "pthread_cond_wait", "pthread_join",
    "getaddrinfo",
  ]

  static let layers: [String: Int] = [
    "CSQLite": 0, "CCurl": 0, "CZlib": 0, "COpenSSL": 0, "CKernels": 0, "CMemory": 0, "LibC": 0,
    "DocumentModel": 1, "JSONText": 1, "StatusCodes": 1, "FlowControl": 1, "Identifiers": 1,
    "InvocationContext": 1, "FunctionLogs": 1, "LinearRegex": 1, "FirestoreProtos": 1,
    "Cryptography": 1,
    "Identity": 2, "Events": 2, "Schedules": 2, "StorageEngine": 2, "OutboundHTTP": 2,
    "Manifests": 2, "HTTPMessages": 2, "DatabaseModel": 2,
    "Invocation": 3, "ProductionPlan": 3, "TaskQueueModel": 3, "EventLog": 3, "SQLiteStorage": 3,
    "QueryEngine": 3, "VectorIndex": 3, "DatabaseRules": 3,
    "HTTPSupport": 3, "FirestoreWire": 3, "GoogleAccess": 3,
    "JSONTranscoding": 3, "SecurityRules": 3,
    "AuthAccounts": 4, "DatabaseTree": 4, "DocumentStore": 4, "HTTP2Server": 4, "WebChannel": 4,
    "WorkerPool": 4,
    "FirestoreClient": 4,
    "AuthEmulator": 5, "RealtimeDatabaseEmulator": 5, "FirestoreEmulator": 5, "VectorEmulator": 5,
    "DataExport": 5,
    "Console": 5, "DatabaseClient": 5, "TriggerDelivery": 5, "TaskQueues": 5,
    "FunctionsGateway": 5, "FunctionsRuntime": 5, "Deployment": 5,
    "EmulatorSuite": 6,
    "HearthCLI": 7, "FunctionsTesting": 7,
    // The application is outside the architecture; its layers count from its imports.
    "PsstModels": 5, "PsstServices": 6, "PsstBackend": 7, "PsstFunctions": 8, "PsstWorker": 9,
  ]
  static let application: Set<String> = [
    "PsstModels", "PsstServices", "PsstBackend", "PsstFunctions", "PsstWorker",
  ]

  static let accessLevels: Set<String> = [
    "public", "package", "internal", "fileprivate", "private",
  ]
  static let importKinds: Set<String> = [
    "struct", "class", "enum", "protocol", "typealias", "func", "let", "var",
  ]
  static let typeKinds: Set<String> = [
    "struct", "class", "enum", "protocol", "actor", "typealias",
  ]
  static let toolchainModules: Set<String> = [
    "Swift", "Foundation", "FoundationEssentials", "FoundationNetworking", "Synchronization",
    "Dispatch", "Testing", "XCTest", "CryptoKit", "Runtime",
    "Glibc", "Musl", "Darwin", "System", "Android", "_Concurrency",
  ]
}
