import JSONText

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The record of what was generated last, with which the next plan and the files are compared.
package struct ProductionRecord: Codable, Sendable, Hashable {
  private var version: Int
  package let resources: [CloudResource]
  /// The hashes of the generated files by name; nil in a record of an older version.
  let files: [String: String]?

  private static let versionKnown = 1

  init(resources: [CloudResource], files: [ProductionFiles.File]) {
    version = Self.versionKnown
    self.resources = resources
    self.files = Dictionary(files.map { ($0.name, Self.hash($0.text.utf8)) }) { $1 }
  }

  /// Reads a record; throws if it is from another version or no record.
  package init(json: Data) throws {
    let record = try Self(decodingJSON: json)
    guard record.version == Self.versionKnown else {
      throw PlanError(
        "The record has version \(record.version); this version reads \(Self.versionKnown)."
      )
    }
    self = record
  }

  /// Returns true if a file of the folder has other contents than were generated.
  ///
  /// False in a record without hashes, which cannot tell.
  func isEdited(_ name: String, _ contents: Data) -> Bool {
    guard let files else { return false }
    return files[name] != Self.hash(contents)
  }

  /// Returns the FNV-1a hash of bytes, which tells an accident and not an attack.
  static func hash(_ bytes: some Sequence<UInt8>) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return String(hash, radix: 16)
  }
}
