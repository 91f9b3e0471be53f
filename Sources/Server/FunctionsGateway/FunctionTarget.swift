import HTTPSupport

/// The parts of `/{project}/{region}/{name}[/path][?query]`.
struct FunctionTarget: Equatable {
  /// The project; empty when the path has too few parts.
  var project = ""
  var region = ""
  var name = ""
  /// The path that the function sees: the rest of the path, never empty, with the query.
  var path = "/"

  /// Reads a request's target; the rest of the path is left as it was sent.
  init(_ target: String) {
    // Compared by bytes: this runs for each call, and characters would cost more than all else
    // here.
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
