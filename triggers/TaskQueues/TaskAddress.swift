import Events
import OutboundHTTP
import StatusCodes

/// The destination that a task's `httpRequest.url` names.
///
/// A function is recognized by its production addresses
/// (`LOCATION-PROJECT.cloudfunctions.net/NAME`, `NAME-….run.app`) and by its address in the suite.
/// Apart from functions, a task can reach only servers on this machine.
struct TaskAddress {
  /// The properties of a task's queue that address parsing needs.
  struct Queue {
    var project: String
    var location: String
    var id: String
    /// The URL of the queue's function in the suite.
    var functionURL: String
    /// True if tasks may be sent to other servers on this machine.
    var reachesLoopback: Bool
  }

  /// The destination of the task; nil for the function of its queue.
  let target: TaskTarget?

  /// Reads and validates an address; `method` is the HTTP method of the task's request.
  ///
  /// Throws `INVALID_ARGUMENT` for an address that tasks cannot reach from here, and for any method
  /// but POST to the queue's own function.
  init(_ url: String?, method: String, of queue: Queue) throws(StatusError) {
    let place = try url.flatMap { $0.isEmpty ? nil : $0 }
      .map { url throws(StatusError) in try Self.place(url, queue) }
    switch place {
    case nil, .function(queue.id, path: "/"):
      guard method == "POST" else {
        throw .invalidArgument(
          "task.httpRequest.httpMethod is \(method); functions take their tasks by POST."
        )
      }
      target = nil
    case let place?: target = TaskTarget(method: method, place: place)
    }
  }

  private static func place(
    _ url: String,
    _ queue: Queue
  ) throws(StatusError) -> TaskTarget.Place {
    guard let parts = URLParts(url) else {
      throw .invalidArgument(
        "task.httpRequest.url is \"\(url.prefix(300))\"; write http://HOST:PORT/PATH or https://…"
      )
    }
    if parts.host == "\(queue.location)-\(queue.project).cloudfunctions.net" {
      return function(parts.path[...])
    }
    if parts.host.hasSuffix(".run.app"), parts.host.hasPrefix(serviceName(queue.id) + "-") {
      return .function(queue.id, path: parts.path)
    }
    guard OutboundURL.isLoopback(host: parts.host) else {
      throw .invalidArgument(
        "task.httpRequest.url is \(url.prefix(300)); tasks do not leave this machine. Leave the "
          + "url out for the queue's function (\(queue.functionURL)), or give another function's "
          + "or http://127.0.0.1:PORT/PATH."
      )
    }
    let prefix = "/\(queue.project)/\(queue.location)/"
    if parts.port == URLParts(queue.functionURL)?.port, parts.path.hasPrefix(prefix),
      parts.path.count > prefix.count
    {
      return function(parts.path.dropFirst(prefix.count - 1))
    }
    guard queue.reachesLoopback else {
      throw .invalidArgument(
        "task.httpRequest.url is \(url.prefix(300)); a suite that other machines reach sends tasks "
          + "to its own functions only, such as \(queue.functionURL)."
      )
    }
    return .url(parts.text)
  }

  /// Returns the function that a path of the form `/NAME/…` names.
  private static func function(_ path: Substring) -> TaskTarget.Place {
    let rest = path.dropFirst()
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let seen = rest[end...]
    return .function(
      String(rest[..<end]),
      path: seen.hasPrefix("/") ? String(seen) : "/\(seen)"
    )
  }

  /// Returns the Cloud Run service name of a function.
  ///
  /// Service names have no capital letters and no underscores.
  private static func serviceName(_ function: String) -> String {
    function.lowercased().replacing("_", with: "-")
  }
}

/// An unambiguous `http` or `https` address.
///
/// Parsing fails for anything that two parsers could read differently: user info, escapes and zones
/// in hosts, backslashes and ports out of range. The address that is sent is rebuilt from the
/// parsed parts.
private struct URLParts {
  var scheme: String
  /// Lowercase letters, digits, hyphens and dots, or `[::1]`.
  var host: String
  var port: UInt16?
  /// The path with its query and without a fragment; never empty.
  var path: String

  init?(_ text: String) {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }),
      let scheme = ["http", "https"].first(where: { text.lowercased().hasPrefix("\($0)://") })
    else { return nil }
    self.scheme = scheme
    let rest = text.dropFirst(scheme.count + 3)
    let authority = rest.prefix { !"/?#".contains($0) }
    let path = rest[authority.endIndex...].prefix { $0 != "#" }
    self.path = path.hasPrefix("/") ? String(path) : "/\(path)"
    var host = authority.lowercased()
    if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") {
      let digits = host[host.index(after: colon)...]
      guard digits.allSatisfy(\.isWholeNumber), let port = UInt16(digits), port > 0 else {
        return nil
      }
      self.port = port
      host = String(host[..<colon])
    }
    guard host == "[::1]" || !host.isEmpty && host.utf8.allSatisfy(Self.isHostByte) else {
      return nil
    }
    self.host = host
  }

  var text: String { "\(scheme)://\(host)\(port.map { ":\($0)" } ?? "")\(path)" }

  private static func isHostByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }
}
