import OutboundHTTP
import RuntimeSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The place that a task's `httpRequest.url` names.
///
/// Functions are known by their addresses in production (`LOCATION-PROJECT.cloudfunctions.net/NAME`,
/// `NAME-….run.app`) and by the suite's own. Besides them a task reaches only this machine.
struct TaskAddress {
  /// A task's queue, as far as addresses need it.
  struct Queue {
    var project: String
    var location: String
    var id: String
    /// The suite's address of the queue's function.
    var functionURL: String
    /// Whether tasks may go to other servers of this machine.
    var reachesLoopback: Bool
  }

  /// Where the task goes; nil for the function of its queue.
  let target: TaskTarget?

  /// Reads and checks an address; `method` is that of the task's request.
  ///
  /// Throws `INVALID_ARGUMENT` for an address that no task reaches from here, and for a method that
  /// the queue's own function does not take.
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
    // What is sent is put together from what was checked, so that no other reader of the text can
    // see another host in it.
    guard let parts = URLComponents(string: url, encodingInvalidCharacters: false),
      let scheme = parts.scheme?.lowercased(),
      ["http", "https"].contains(scheme), let host = parts.host?.lowercased(), !host.isEmpty,
      parts.user == nil, parts.password == nil,
      (1...65_535).contains(parts.port ?? 80), let encodedHost = parts.encodedHost
    else {
      throw .invalidArgument(
        "task.httpRequest.url is \"\(url.prefix(300))\"; write http://HOST:PORT/PATH or https://…"
      )
    }
    var path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
    if let query = parts.percentEncodedQuery { path += "?\(query)" }
    if host == "\(queue.location)-\(queue.project).cloudfunctions.net" {
      return function(path[...])
    }
    if host.hasSuffix(".run.app"), host.hasPrefix(serviceName(queue.id) + "-") {
      return .function(queue.id, path: path)
    }
    if OutboundURL.isLoopback(host: host) {
      let own = URLComponents(string: queue.functionURL)
      let prefix = "/\(queue.project)/\(queue.location)/"
      if parts.port == own?.port, path.hasPrefix(prefix), path.count > prefix.count {
        return function(path.dropFirst(prefix.count - 1))
      }
      if queue.reachesLoopback {
        let port = parts.port.map { ":\($0)" } ?? ""
        return .url("\(scheme)://\(encodedHost)\(port)\(path)")
      }
      throw .invalidArgument(
        "task.httpRequest.url is \(url.prefix(300)); a suite that other machines reach sends tasks "
          + "to its own functions only, such as \(queue.functionURL)."
      )
    }
    throw .invalidArgument(
      "task.httpRequest.url is \(url.prefix(300)); tasks do not leave this machine. Leave the url "
        + "out for the queue's function (\(queue.functionURL)), or give another function's or "
        + "http://127.0.0.1:PORT/PATH."
    )
  }

  /// The function of `/NAME/…`.
  private static func function(_ path: Substring) -> TaskTarget.Place {
    let rest = path.dropFirst()
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let seen = rest[end...]
    return .function(
      String(rest[..<end]),
      path: seen.hasPrefix("/") ? String(seen) : "/\(seen)"
    )
  }

  /// What Cloud Run calls a function, which has no capitals there.
  private static func serviceName(_ function: String) -> String {
    function.lowercased().replacing("_", with: "-")
  }
}

extension URLComponents {
  /// The host as an address has it: a number of IPv6 in brackets.
  fileprivate var encodedHost: String? {
    guard let host = percentEncodedHost else { return nil }
    return host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
  }
}
