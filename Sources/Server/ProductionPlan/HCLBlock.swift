/// A block of Terraform's language, written as `terraform fmt` would.
struct HCLBlock {
  /// The type and labels, such as `resource "google_service_account" "runtime"`.
  var header: String
  var items: [Item] = []

  /// A part of a block.
  enum Item {
    case attribute(String, String)
    /// A list with one expression a line.
    case list(String, [String])
    /// A set of strings with one expression a line.
    case set(String, [String])
    case map(String, [(String, String)])
    case block(HCLBlock)
    case comment(String)
  }

  init(_ header: String, _ items: [Item] = []) {
    self.header = header
    self.items = items
  }

  /// The block in text, without a newline at its end.
  var text: String { lines.joined(separator: "\n") }

  private var lines: [String] {
    guard !items.isEmpty else { return ["\(header) {}"] }
    return ["\(header) {"] + Self.lines(of: items).map { $0.isEmpty ? "" : "  " + $0 } + ["}"]
  }

  private static func lines(of items: [Item]) -> [String] {
    var lines: [String] = []
    var rest = items[...]
    var isCommented = false
    while let item = rest.first {
      var part: [String] = []
      switch item {
      case .attribute:
        var group: [(String, String)] = []
        while case .attribute(let name, let value)? = rest.first {
          group.append((name, value))
          rest = rest.dropFirst()
        }
        part = aligned(group)
      case .list(let name, let values):
        rest = rest.dropFirst()
        part = ["\(name) = ["] + values.map { "  \($0)," } + ["]"]
      case .set(let name, let values):
        rest = rest.dropFirst()
        part = ["\(name) = toset(["] + values.map { "  \($0)," } + ["])"]
      case .map(let name, let pairs):
        rest = rest.dropFirst()
        part = ["\(name) = {"] + aligned(pairs).map { "  " + $0 } + ["}"]
      case .block(let block):
        rest = rest.dropFirst()
        part = block.lines
      case .comment(let text):
        rest = rest.dropFirst()
        part = ["# " + QuotedText.comment(text)]
      }
      // A comment stands directly above what it is about.
      lines += (lines.isEmpty || isCommented ? [] : [""]) + part
      if case .comment = item { isCommented = true } else { isCommented = false }
    }
    return lines
  }

  /// Returns attributes with their equals signs below one another.
  private static func aligned(_ pairs: [(String, String)]) -> [String] {
    let width = pairs.map(\.0.count).max() ?? 0
    return pairs.map { name, value in
      name + String(repeating: " ", count: width - name.count) + " = " + value
    }
  }
}
