import ArgumentParser
import Deployment
import EmulatorSuite
import Foundation
import Manifests
import ProductionPlan

/// `hearth production`: writes what a Google project needs to run the functions.
struct Production: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write what a Google project needs to run the functions on Cloud Run.",
    discussion: """
      Builds the functions, asks the binary for them, and writes a folder: Terraform (main.tf) and \
      the same as gcloud commands (gcloud.sh) for the image, a service for each function, \
      accounts with the least rights, triggers, schedules, queues, secrets, indexes and rules, \
      and what removes it again. Nothing is sent to Google.

        hearth production                       writes production/
        hearth production --project my-project --firestore-location eur3
        hearth production --diff                what changed since

      Give --diff the other options with which the files were written. Its exit codes are those of \
      diff: 0 nothing changed, 1 something did, 2 trouble.
      """
  )

  @OptionGroup(title: "Functions") var functions: FunctionsOptions

  @Option(help: "The Google project; by default that of .firebaserc, else the files ask for it.")
  var project: String?

  @Option(
    help: """
      The region of the image and of Firestore. (default: the region of most functions)
      """
  )
  var region: String?

  @Option(
    help: ArgumentHelp(
      "Where Firestore is: nam5, eur3 or a region. (default: the region)",
      valueName: "location"
    )
  )
  var firestoreLocation: String?

  @Option(
    help: ArgumentHelp(
      "The CPUs of each instance, such as 0.5 or 2. (default: the fewest for its memory)",
      valueName: "number"
    )
  )
  var cpu: Double?

  @Option(name: .customLong("out"), help: ArgumentHelp("The folder to write.", valueName: "folder"))
  var out = "production"

  @Flag(help: "Write nothing; print what differs from what was generated last.")
  var diff = false

  func validate() throws {
    try ProjectID.check(project)
    for (name, place) in [("--region", region), ("--firestore-location", firestoreLocation)] {
      guard let place else { continue }
      let isPlace = place.utf8.allSatisfy {
        (97...122).contains($0) || (48...57).contains($0) || $0 == 45
      }
      guard isPlace, !place.isEmpty else {
        throw ValidationError("\(name) is \"\(place)\"; give one such as europe-west1.")
      }
    }
    if let cpu, !(cpu >= 0.08 && cpu <= 8) {
      throw ValidationError("--cpu is \(cpu); give 0.08 to 8.")
    }
    guard !functions.skipsFunctions else {
      throw ValidationError("--no-functions leaves nothing to write; leave it out.")
    }
  }

  func run() async throws {
    do {
      let (plan, files) = try await generated()
      for warning in plan.warnings { Terminal.note(safe: "warning: \(warning.description)") }
      if let folder = try foldersOutside().first {
        Terminal.note(
          "warning: Package.swift depends on the folder \(folder), which is not in the image. Name "
            + "an address there, such as .package(url: \"https://…/hearth\", branch: \"main\")."
        )
      }
      if diff {
        try showDifference(of: plan, files)
      } else {
        try write(files)
      }
    } catch let error as CommandError {
      throw CommandError(error.message, diff ? .usage : error.code)
    } catch let error as DeploymentError {
      throw CommandError(error.message, diff ? .usage : .failed)
    } catch let error as PlanError {
      throw CommandError(error.description, diff ? .usage : .failed)
    }
  }

  // MARK: - The plan

  private func generated() async throws -> (CloudPlan, ProductionFiles) {
    let files = try ProjectFiles.ofWorkingFolder()
    guard let source = functions.configuration(files, isWatched: false) else {
      throw CommandError(
        "There are no functions here: no --executable is given, and firebase.json names no "
          + "functions.source. `hearth init` writes a package with functions."
      )
    }
    let project = try googleProject(files)
    let read = try await ManifestReader().functions(
      of: source.source,
      builds: source.builds,
      project: project ?? ProjectID.standard,
      environment: binaryEnvironment(),
      progress: { Terminal.note("  " + $0) }
    )
    let endpoints = read.manifest.endpoints
    guard !endpoints.isEmpty else { throw CommandError("\(read.binary) has no functions.") }
    let folder = source.source.folder
    let hasDockerfile = FileManager.default.fileExists(atPath: folder + "/Dockerfile")
    let sourcePath = Self.path(from: absolutePath(out), to: folder)
    let plan = try CloudPlan(
      functions: endpoints,
      settings: ProductionSettings(
        project: project,
        region: region ?? Self.region(ofMost: endpoints),
        firestoreLocation: firestoreLocation,
        cpu: cpu,
        environment: read.variables,
        rules: try files.firestoreRules.map(Self.text),
        indexes: try Self.indexes(at: files.firestoreIndexes),
        product: URL(filePath: read.binary).lastPathComponent,
        sourcePath: sourcePath,
        dockerfilePath: hasDockerfile ? "\(sourcePath)/Dockerfile" : "Dockerfile"
      )
    )
    let rendered = try ProductionFiles(
      plan,
      dockerfile: hasDockerfile ? nil : StarterFiles.template(PackageResources.Dockerfile),
      ignored: hasDockerfile
        ? nil : StarterFiles.template(PackageResources.Dockerfile_dockerignore)
    )
    return (plan, rendered)
  }

  /// Returns the folders outside the package that its manifest depends on, as they are written.
  private func foldersOutside() throws -> [String] {
    let files = try ProjectFiles.ofWorkingFolder()
    // Without a manifest nothing is known to be outside.
    guard let source = functions.configuration(files, isWatched: false)?.source.folder,
      let manifest = try? String(contentsOfFile: source + "/Package.swift", encoding: .utf8)
    else { return [] }
    // The manifest is a program; this finds the usual form of a dependency.
    let dependency = /\.package\([^)]*path:\s*"([^"]+)"/
    return manifest.matches(of: dependency).map { String($0.1) }.filter { path in
      path.hasPrefix("/") || path.split(separator: "/").first == ".."
    }
  }

  /// Returns the project, or nil with a note if there is only one that stays offline.
  private func googleProject(_ files: ProjectFiles) throws -> String? {
    guard let name = project ?? files.defaultProject else { return nil }
    guard name.hasPrefix("demo-") else {
      try ProjectID.check(name)
      return name
    }
    Terminal.note("\(name) is no project of Google's; give yours with --project, or to the files.")
    return nil
  }

  /// The environment in which the binary describes its functions, as in a deployment.
  private func binaryEnvironment() -> [String: String] {
    let own = ProcessInfo.processInfo.environment
    let kept = ["PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "SSL_CERT_FILE"]
    return own.filter { kept.contains($0.key) }.merging(["FUNCTIONS_EMULATOR": "true"]) { $1 }
  }

  /// Returns the region that most functions name first; of equals the one first in the alphabet.
  private static func region(ofMost functions: [String: FunctionEndpoint]) -> String {
    let counts = Dictionary(functions.values.map { ($0.regions[0], 1) }, uniquingKeysWith: +)
    return counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.first?.key
      ?? FunctionEndpoint.defaultRegion
  }

  private static func text(ofFile path: String) throws -> String {
    do {
      return try String(contentsOf: URL(filePath: path), encoding: .utf8)
    } catch {
      throw CommandError("\(path) cannot be read: \(error.localizedDescription)")
    }
  }

  private static func indexes(at path: String) throws -> FirestoreIndexes {
    guard FileManager.default.fileExists(atPath: path) else { return FirestoreIndexes() }
    let json: Data
    do {
      json = try Data(contentsOf: URL(filePath: path))
    } catch {
      throw CommandError("\(path) cannot be read: \(error.localizedDescription)")
    }
    return try FirestoreIndexes(json: json, file: path)
  }

  /// Returns a path relative to a folder; both are absolute.
  static func path(from folder: String, to other: String) -> String {
    let start = URL(filePath: folder).standardizedFileURL.pathComponents
    let end = URL(filePath: other).standardizedFileURL.pathComponents
    let shared = zip(start, end).prefix { $0 == $1 }.count
    let parts = Array(repeating: "..", count: start.count - shared) + end.dropFirst(shared)
    return parts.isEmpty ? "." : parts.joined(separator: "/")
  }

  // MARK: - The folder

  private func write(_ files: ProductionFiles) throws {
    let folder = URL(filePath: absolutePath(out))
    let record = folder.appending(path: ProductionFiles.recordName)
    if !FileManager.default.fileExists(atPath: record.path),
      let stranger = files.files.first(where: {
        FileManager.default.fileExists(atPath: folder.appending(path: $0.name).path)
      })
    {
      throw CommandError(
        "\(out)/\(stranger.name) is there, and not written by this command; name another folder "
          + "with --out."
      )
    }
    let kept = try keepEdits(of: files, in: folder)
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      for file in files.files {
        let path = folder.appending(path: file.name)
        try file.text.write(to: path, atomically: true, encoding: .utf8)
        if file.isScript {
          try FileManager.default.setAttributes(
            [.posixPermissions: 0o755],
            ofItemAtPath: path.path
          )
        }
      }
    } catch {
      throw CommandError("\(folder.path) cannot be written: \(error.localizedDescription)")
    }
    for (name, old) in kept {
      Terminal.print("\(out)/\(name) was edited; the edited text is kept in \(out)/\(old).")
    }
    Terminal.print("Wrote \(files.files.count) files to \(out); read \(out)/README.md next.")
  }

  /// Copies the edited files of a folder that was generated before, and returns both names of each.
  private func keepEdits(
    of files: ProductionFiles,
    in folder: URL
  ) throws -> [(name: String, old: String)] {
    let path = folder.appending(path: ProductionFiles.recordName)
    guard FileManager.default.fileExists(atPath: path.path) else { return [] }
    // Without a record that can be read, every file that differs may have been edited.
    let record = try? ProductionRecord(json: Data(contentsOf: path))
    let contents = try contents(of: files, in: folder)
    return try files.edited(in: contents, since: record).compactMap { name in
      try contents[name].map { (name, try keep($0, of: name, in: folder)) }
    }
  }

  /// Writes an edited text beside its file, and returns its name; other old texts stay.
  private func keep(_ text: Data, of name: String, in folder: URL) throws -> String {
    let names = ["\(name).old"] + (2...Self.oldFilesMax).map { "\(name).old.\($0)" }
    for old in names {
      let path = folder.appending(path: old)
      do {
        if FileManager.default.fileExists(atPath: path.path) {
          guard try Data(contentsOf: path) == text else { continue }
        } else {
          try text.write(to: path, options: .atomic)
        }
      } catch {
        throw CommandError("\(path.path) cannot be written: \(error.localizedDescription)")
      }
      return old
    }
    throw CommandError(
      "\(out)/\(name) was edited, and there are \(Self.oldFilesMax) old texts of it; remove some."
    )
  }

  /// The most old texts of one file.
  private static let oldFilesMax = 100

  /// Returns the contents of the files that exist.
  private func contents(of files: ProductionFiles, in folder: URL) throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for file in files.files {
      let path = folder.appending(path: file.name)
      guard FileManager.default.fileExists(atPath: path.path) else { continue }
      do {
        contents[file.name] = try Data(contentsOf: path)
      } catch {
        throw CommandError("\(path.path) cannot be read: \(error.localizedDescription)")
      }
    }
    return contents
  }

  /// Prints what differs from the folder; throws exit code 1 if something does.
  private func showDifference(of plan: CloudPlan, _ files: ProductionFiles) throws {
    let folder = URL(filePath: absolutePath(out))
    let path = folder.appending(path: ProductionFiles.recordName)
    var record: ProductionRecord?
    if FileManager.default.fileExists(atPath: path.path) {
      do {
        record = try ProductionRecord(json: Data(contentsOf: path))
      } catch {
        throw CommandError("\(path.path) is not a record of this version; generate anew.")
      }
    }
    var lines = PlanDifference(from: record?.resources ?? [], to: plan.resources).lines
    if let record {
      lines += files.differences(
        in: try contents(of: files, in: folder),
        since: record,
        plansDiffer: !lines.isEmpty
      )
    }
    guard !lines.isEmpty else { return Terminal.print("Nothing changed.") }
    Terminal.print(lines.joined(separator: "\n"))
    throw ExitCode(1)
  }
}
