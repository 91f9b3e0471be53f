/// A parser that assembles the head of a response from the lines that libcurl delivers.
///
/// Interim responses (1xx) and followed redirects come before the final head, so each status line
/// starts a new head. Trailers after the body are dropped.
struct HeadParser {
  /// The maximum size of a head, more than any server in use sends.
  ///
  /// Larger responses are refused.
  static let bytesMax = 256 << 10

  /// The effect of one line.
  enum Step {
    case more
    case head(ResponseHead)
    case tooLarge
  }

  private let followsRedirects: Bool
  private var status = 0
  private var headers = OutboundHeaders()
  private var bytes = 0
  private var isDone = false

  /// Creates a parser for the response to one request.
  init(followsRedirects: Bool) {
    self.followsRedirects = followsRedirects
  }

  /// The head so far.
  ///
  /// It is used for a response that ends before its head is known to be the last.
  var current: ResponseHead? {
    status == 0 ? nil : ResponseHead(status: status, headers: headers)
  }

  /// Adds one line, including its line break.
  mutating func line(_ raw: UnsafeRawBufferPointer) -> Step {
    if isDone { return .more }
    bytes += raw.count
    if bytes > Self.bytesMax { return .tooLarge }
    let text = String(decoding: raw, as: UTF8.self)
    let line = text.prefix { !$0.isNewline }
    if line.hasPrefix("HTTP/"), let code = line.split(separator: " ").dropFirst().first {
      status = Int(code) ?? 0
      headers = [:]
    } else if let colon = line.firstIndex(of: ":") {
      headers.append(
        String(line[..<colon]),
        Self.trimmed(line[line.index(after: colon)...])
      )
    } else if line.isEmpty, status >= 200 {
      let mayBeFollowed = followsRedirects && (300..<400).contains(status)
      guard !mayBeFollowed else { return .more }
      isDone = true
      return .head(ResponseHead(status: status, headers: headers))
    }
    return .more
  }

  private static func trimmed(_ text: Substring) -> String {
    var text = text.drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return String(text)
  }
}
