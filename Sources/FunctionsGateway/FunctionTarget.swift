import HTTPSupport

/// The parts of `/{project}/{region}/{name}[/path][?query]`.
struct FunctionTarget: Equatable {
  /// Empty where the path has too few parts.
  var project = ""
  var region = ""
  var name = ""
  /// What the function sees: the rest of the path, never empty, with the query.
  var path = "/"

  /// Reads a request's target; the rest of the path is left as it was sent.
  init(_ target: String) {
    let queryStart = target.firstIndex { $0 == "?" || $0 == "#" } ?? target.endIndex
    let query = target[queryStart...]
    let parts = target[..<queryStart].split(
      separator: "/",
      maxSplits: 4,
      omittingEmptySubsequences: false
    )
    guard parts.count >= 4, parts[0].isEmpty, let project = percentDecoded(parts[1]),
      let region = percentDecoded(parts[2]), let name = percentDecoded(parts[3])
    else { return }
    self.project = project
    self.region = region
    self.name = name
    path = "/\(parts.count > 4 ? parts[4] : "")\(query)"
  }
}
