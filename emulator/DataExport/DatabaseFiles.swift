import DatabaseModel
import DatabaseTree
import Foundation
import Identity
import JSONText
import StatusCodes

/// The trees of the Realtime Database in an export: a JSON file for each instance.
struct DatabaseFiles: Sendable {
  static let folder = "database_export"

  /// The instances with the paths of their files, in the order of the names.
  private(set) var files: [(instance: String, path: String)]

  /// Finds the files in a folder; throws `INVALID_ARGUMENT` for one that leads out of `export`.
  init(folder: String, isIn export: String) throws {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder)
    } catch {
      throw StatusError(.notFound, "\(folder) is missing; copy the whole folder.")
    }
    files = names.filter { $0.hasSuffix(Self.suffix) && $0 != Self.suffix }.sorted().map {
      (String($0.dropLast(Self.suffix.count)), "\(folder)/\($0)")
    }
    for file in files { try RegularFile.check(file.path, isIn: export) }
  }

  /// Takes one file as the tree of an instance.
  init(path: String, instance: String) {
    files = [(instance, path)]
  }

  /// Writes the tree of each instance that has data to a folder; nil if there are none.
  ///
  /// A tree has the state of the moment at which it is written.
  static func write(
    _ database: RealtimeDatabase,
    to destination: ExportDestination
  ) async throws -> (folder: String, instances: Int)? {
    var written: (folder: String, instances: Int)?
    for name in try await database.instanceNames() {
      var file: ExportFileWriter?
      try await database.instance(name).forEachPiece { piece in
        try Task.checkCancellation()
        if file == nil {
          let parts = try written ?? (destination.makeFolder(folder), 0)
          file = try ExportFileWriter(path: "\(parts.folder)/\(name)\(suffix)")
          written = (parts.folder, parts.instances + 1)
        }
        try file?.append(bytes: piece)
      }
      try file?.append(line: [])
      _ = try file?.finish()
    }
    return written
  }

  /// Throws `INVALID_ARGUMENT` with the file and the mistake for a tree that cannot be written.
  func check() async throws {
    for file in files {
      guard RealtimeDatabase.isValid(file.instance) else {
        throw StatusError.invalidArgument(
          "\(file.path): \(jsonQuoted(file.instance)) cannot be the name of a Realtime Database."
        )
      }
      try await DatabaseTreeText(path: file.path).forEachPart { _ in }
    }
  }

  /// Replaces the trees of the instances; of all other instances, too, if `replaces` is true.
  func load(into database: RealtimeDatabase, _ options: DataImporter.Options) async throws {
    func write(_ operation: DatabaseWrite.Operation, to instance: String) async throws {
      try Task.checkCancellation()
      do {
        let target = try database.instance(instance)
        guard options.isServing else { return try await target.load(operation) }
        let write = DatabaseWrite(operation, disablesTriggers: !options.firesTriggers)
        try await target.write(write, as: DatabaseCaller(.admin))
      } catch let error as DatabaseError {
        throw StatusError(
          error.kind == .unavailable ? .unavailable : .failedPrecondition,
          "\(instance): \(error.message)"
        )
      }
    }
    if options.replaces {
      let imported = Set(files.map(\.instance))
      for name in try await database.instanceNames() where !imported.contains(name) {
        try await write(.set(.root, DatabaseInput(.empty)), to: name)
      }
    }
    for file in files {
      try await DatabaseTreeText(path: file.path).forEachPart {
        try await write($0, to: file.instance)
      }
    }
  }

  private static let suffix = ".json"
}

/// The JSON of a tree, which is written in parts of limited size.
private struct DatabaseTreeText {
  private let path: String
  private let text: [UInt8]
  private var members: [DatabaseWrite.Member] = []
  private var bytes = 0

  init(path: String) throws {
    self.path = path
    text = try RegularFile.contents(of: path, bytesMax: Self.bytesMax)
  }

  /// Passes writes to `body` that together replace the whole tree.
  consuming func forEachPart(
    _ body: (DatabaseWrite.Operation) async throws -> Void
  ) async throws {
    try await add(text, at: .root, body)
    try await flush(body)
  }

  /// Adds the node at a path to the next part, or its children if its text is long.
  private mutating func add(
    _ json: [UInt8],
    at place: DatabasePath,
    _ body: (DatabaseWrite.Operation) async throws -> Void
  ) async throws {
    guard json.count > Self.partBytesMax, let children = try children(of: json) else {
      let value = try input(json, at: place)
      guard !place.isRoot else { return try await body(.set(.root, value)) }
      members.append(DatabaseWrite.Member(path: place, value: value))
      bytes += json.count
      if bytes >= Self.partBytesMax || members.count >= Self.partMembersMax {
        try await flush(body)
      }
      return
    }
    if place.isRoot { try await body(.set(.root, DatabaseInput(.empty))) }
    var priority: [UInt8]?
    for (key, child) in children {
      if key == Self.priorityKey {
        priority = child
      } else {
        guard DatabaseKey.isValid(key) else { throw invalid(.invalidKey(key)) }
        try await add(child, at: place.child(key), body)
      }
    }
    guard let priority else { return }
    // A node that does not exist yet has no priority.
    try await flush(body)
    do {
      try await body(.setPriority(place, DatabaseInput(priority: JSONTree.parse(priority))))
    } catch let error as DatabaseDataError {
      throw invalid(error)
    }
  }

  private mutating func flush(
    _ body: (DatabaseWrite.Operation) async throws -> Void
  ) async throws {
    guard !members.isEmpty else { return }
    try await body(.merge(.root, members))
    members = []
    bytes = 0
  }

  /// Returns the members of an object, each name once; nil for all that is written as a whole.
  private func children(of json: [UInt8]) throws -> [(name: String, value: [UInt8])]? {
    let members: [(name: String, value: [UInt8])]?
    do {
      members = try jsonMembersInOrder(of: json)
    } catch {
      // Only the whole text is parsed for the first time here.
      throw notJSON(error)
    }
    guard let members, !members.contains(where: { [".value", ".sv"].contains($0.name) }) else {
      return nil
    }
    // As everywhere, the last one of members with the same name counts.
    let last = Dictionary(members.enumerated().map { ($1.name, $0) }) { $1 }
    return members.enumerated().filter { last[$1.name] == $0 }.map(\.element)
  }

  private func input(_ json: [UInt8], at place: DatabasePath) throws -> DatabaseInput {
    let tree: JSONTree
    do {
      tree = try JSONTree.parse(json)
    } catch {
      throw notJSON(error)
    }
    do throws(DatabaseDataError) {
      let value = try DatabaseInput(tree)
      guard place.count + value.node.depth <= DatabasePath.depthMax else {
        throw DatabaseDataError.tooDeep
      }
      return value
    } catch {
      throw invalid(error)
    }
  }

  private func notJSON(_ error: JSONSyntaxError) -> StatusError {
    .invalidArgument("\(path) is not JSON: \(error.explanation(in: text))")
  }

  private func invalid(_ error: DatabaseDataError) -> StatusError {
    .invalidArgument("\(path): \(error.placed(in: text).message)")
  }

  /// The maximum size of a file, which is read as a whole.
  private static let bytesMax = 1 << 30
  /// The size of the JSON in one write, which blocks other writers.
  private static let partBytesMax = 1 << 20
  /// The maximum number of nodes in one write.
  private static let partMembersMax = 1_000
  private static let priorityKey = ".priority"
}
