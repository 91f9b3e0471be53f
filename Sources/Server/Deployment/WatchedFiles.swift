#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

import LibC

/// A scanner that finds the files whose contents have changed since the last scan.
///
/// A file that was only touched has not changed. Hidden files, folders of SwiftPM and Hearth, and
/// temporary files of editors are ignored, unless they are roots themselves.
struct WatchedFiles {
  /// The absolute paths of the files and folders to watch.
  var roots: Set<String>
  /// The folders below the roots that are ignored.
  var excluded: Set<String> = []
  private var known: [String: Fingerprint]?

  /// Creates a scanner; the first call of `changes` records the initial state.
  init(roots: Set<String>, excluded: Set<String> = []) {
    self.roots = roots
    self.excluded = excluded
  }

  private struct Fingerprint: Equatable {
    var size: Int
    var seconds: Int
    var nanoseconds: Int
    var file: UInt64
    /// The hash of the contents; nil for files too large to be read at every change.
    var hash: Int?

    func isSameFile(as other: Fingerprint) -> Bool {
      size == other.size && seconds == other.seconds && nanoseconds == other.nanoseconds
        && file == other.file
    }

    func hasSameContents(as other: Fingerprint) -> Bool {
      guard let hash, let otherHash = other.hash else { return isSameFile(as: other) }
      return size == other.size && hash == otherHash
    }
  }

  /// Returns files that were added, removed or changed since the last call.
  ///
  /// The first call returns no files.
  mutating func changes() -> Set<String> {
    var found: [String: Fingerprint] = [:]
    var left = Self.filesMax
    for root in roots.sorted() { look(at: root, depth: 0, left: &left, into: &found) }
    defer { known = found }
    guard let known else { return [] }
    var changed = Set(known.keys.filter { found[$0] == nil })
    for (path, fingerprint) in found {
      if known[path].map({ !$0.hasSameContents(as: fingerprint) }) ?? true { changed.insert(path) }
    }
    return changed
  }

  private func look(
    at path: String,
    depth: Int,
    left: inout Int,
    into found: inout [String: Fingerprint]
  ) {
    guard left > 0, depth <= Self.depthMax, found[path] == nil else { return }
    var status = stat()
    guard stat(path, &status) == 0 else { return }
    switch status.st_mode & S_IFMT {
    case S_IFREG:
      left -= 1
      found[path] = fingerprint(of: path, status)
    case S_IFDIR:
      // A folder that cannot be listed contains no sources that a build could read.
      let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
      for name in names.sorted() where !Self.isIgnored(name) {
        let inner = "\(path)/\(name)"
        guard !excluded.contains(inner) else { continue }
        look(at: inner, depth: depth + 1, left: &left, into: &found)
      }
    default: return
    }
  }

  private func fingerprint(of path: String, _ status: stat) -> Fingerprint {
    #if canImport(Darwin)
      let modified = status.st_mtimespec
    #else
      let modified = status.st_mtim
    #endif
    var fingerprint = Fingerprint(
      size: Int(status.st_size),
      seconds: Int(modified.tv_sec),
      nanoseconds: Int(modified.tv_nsec),
      file: UInt64(truncatingIfNeeded: status.st_ino)
    )
    if let before = known?[path], before.isSameFile(as: fingerprint) { return before }
    // Of a file that cannot be read, as of a large one, only the size and time are compared.
    if fingerprint.size <= Self.hashedBytesMax,
      let data = try? Data(contentsOf: URL(filePath: path))
    {
      var hasher = Hasher()
      data.withUnsafeBytes { hasher.combine(bytes: $0) }
      fingerprint.hash = hasher.finalize()
    }
    return fingerprint
  }

  /// True if a file is hidden, or is a temporary or backup file of an editor.
  static func isIgnored(_ name: String) -> Bool {
    name.hasPrefix(".") || name.hasPrefix("#") || name.hasPrefix("~$") || name.hasSuffix("~")
      || name.hasSuffix("___jb_tmp___") || name.hasSuffix("___jb_old___") || name == "4913"
      || [".swp", ".swo", ".swx", ".tmp", ".bak", ".orig"].contains(where: name.hasSuffix)
  }

  /// The maximum number of files watched; functions sources do not have more.
  private static let filesMax = 20_000
  /// The maximum depth of folders watched, because links may form cycles.
  private static let depthMax = 32
  /// The largest file that is hashed; a larger one counts as changed with its size or time.
  private static let hashedBytesMax = 8 << 20
}
