import HTTPSupport

/// The parts of a request target: `/{project}/{region}/{name}[/path][?query]`.
struct FunctionTarget: Equatable {
  /// The project ID; empty if the path has too few segments.
  var project = ""
  var region = ""
  var name = ""
  /// The path for the function: the rest of the path with the query, never empty.
  var path = "/"

  /// Parses a request target; the rest of the path is kept as it was sent.
  init(_ target: String) {
    // Bytes are compared because this runs on each call, and comparing characters is far slower.
    let bytes = target.utf8
    let queryStart =
      bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
    let parts = bytes[..<queryStart].split(
      separator: UInt8(ascii: "/"),
      maxSplits: 4,
      omittingEmptySubsequences: false
    )
    guard parts.count >= 4, parts[0].isEmpty, let project = percentDecoded(Substring(parts[1])),
      let region = percentDecoded(Substring(parts[2])),
      let name = percentDecoded(Substring(parts[3]))
    else { return }
    self.project = project
    self.region = region
    self.name = name
    let rest = parts.count > 4 ? parts[4].startIndex : queryStart
    if rest < bytes.endIndex { path = "/\(target[rest...])" }
  }
}
