import ArgumentParser
import EmulatorSuite
import Foundation
import OutboundHTTP

/// `hearth indexes`: shows the indexes that Firestore needs in production.
struct Indexes: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the indexes that production needs for the queries so far.",
    discussion: """
      The emulator answers every query; production refuses those for which it lacks a composite \
      index. Run the app or its tests against the suite, then let this write what they need: \
      --write adds it to the file that firebase.json names, by default firestore.indexes.json, \
      and keeps what is there. `hearth start --strict-indexes` then refuses what production would.

        hearth indexes
        hearth indexes --write
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Option(help: "The database's id.")
  var database = "(default)"

  @Flag(help: "Add what is missing to the project's file of indexes.")
  var write = false

  func run() async throws {
    let client = try await suite.connect()
    let body = try await client.data(
      "GET",
      "/hearth/v1/indexes?database=\(OutboundURL.encode(database))"
    )
    guard write else {
      let text = String(decoding: body, as: UTF8.self)
      return Terminal.print(json: text.hasSuffix("\n") ? String(text.dropLast()) : text)
    }
    let files = try ProjectFiles.ofWorkingFolder()
    let path = files.firestoreIndexes
    let needed = try Self.object(Data(body), at: "the suite's answer")
    var file: [String: Any] = [:]
    if FileManager.default.fileExists(atPath: path) {
      file = try Self.object(try Data(contentsOf: URL(filePath: path)), at: path)
    }
    var indexes = try Self.list("indexes", of: file, at: path)
    var overrides = try Self.list("fieldOverrides", of: file, at: path)
    var added = 0
    for index in try Self.list("indexes", of: needed, at: path) where !indexes.contains(index) {
      indexes.append(index)
      added += 1
    }
    for override in try Self.list("fieldOverrides", of: needed, at: path) {
      added += Self.add(override, to: &overrides)
    }
    guard added > 0 else {
      return Terminal.print(
        indexes.isEmpty && overrides.isEmpty
          ? "No query so far needs an index, so nothing was written."
          : "\(path) has every index that was needed."
      )
    }
    file["indexes"] = indexes
    file["fieldOverrides"] = overrides
    let data = try JSONSerialization.data(
      withJSONObject: file,
      options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    )
    do {
      try (data + [0x0A]).write(to: URL(filePath: path), options: .atomic)
    } catch {
      throw CommandError("\(path) cannot be written: \(error.localizedDescription)")
    }
    Terminal.print("\(added) added to \(path).")
  }

  /// Adds a field override, or its missing indexes to the existing override of the field.
  ///
  /// Returns 1 if something was added, else 0.
  private static func add(_ override: NSDictionary, to overrides: inout [NSDictionary]) -> Int {
    func isSame(_ other: NSDictionary, _ key: String) -> Bool {
      other[key] as? String == override[key] as? String
    }
    guard
      let place = overrides.firstIndex(where: {
        isSame($0, "collectionGroup") && isSame($0, "fieldPath")
      })
    else {
      overrides.append(override)
      return 1
    }
    var known = overrides[place]["indexes"] as? [NSDictionary] ?? []
    let missing = (override["indexes"] as? [NSDictionary] ?? []).filter { !known.contains($0) }
    guard !missing.isEmpty else { return 0 }
    known += missing
    // Other settings of the field, such as its time to live, are kept.
    let extended = NSMutableDictionary()
    for (key, value) in overrides[place] {
      if let key = key as? NSString { extended.setObject(value, forKey: key) }
    }
    extended.setObject(known, forKey: "indexes" as NSString)
    overrides[place] = extended
    return 1
  }

  private static func object(_ data: Data, at place: String) throws -> [String: Any] {
    // Any content that is not a JSON object leads to the same error.
    guard let object = try? JSONSerialization.jsonObject(with: data) as? [String: Any] else {
      throw CommandError("\(place) is not a file of indexes; correct it.")
    }
    return object
  }

  private static func list(
    _ name: String,
    of file: [String: Any],
    at place: String
  ) throws -> [NSDictionary] {
    guard let value = file[name] else { return [] }
    guard let list = value as? [NSDictionary] else {
      throw CommandError("\(place): \(name) is not a list of objects; correct it.")
    }
    return list
  }
}
