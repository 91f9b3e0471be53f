import Foundation
import LibC

/// A worker that violates the protocol, written without the runtime library.
///
/// It reports itself as healthy, unless its fault concerns the health check.
struct SampleOddWorker {
  /// The ways to violate the protocol.
  enum Fault: String, CaseIterable {
    case neverListens, neverAccepts, nonsense, illNonsense, half, halfStream, short, long, twice
    case dies, neverReads
  }

  let fault: Fault

  /// Serves until the process is ended.
  func serve(at path: String) -> Never {
    signal(SIGPIPE, SIG_IGN)
    let listener = Self.listen(at: path, isOpen: fault != .neverListens)
    while true {
      if fault == .neverListens || fault == .neverAccepts {
        sleep(3600)  // The fault of this worker.
        continue
      }
      let connection = accept(listener, nil, nil)
      if connection >= 0 { answer(connection) }
    }
  }

  /// Serves a connection on its own thread, because several may be open.
  private func answer(_ connection: CInt) {
    let fault = fault
    // The thread ends with its connection or with the process.
    Thread.detachNewThread { Self.converse(connection, fault) }
  }

  private static func converse(_ connection: CInt, _ fault: Fault) {
    while let head = readRequest(connection) {
      if head.hasPrefix("GET /__/health") {
        send(connection, fault == .illNonsense ? "\u{1}\u{2}hello\r\n\r\n" : whole("ok"))
        if fault == .neverReads { sleep(3600) }  // The fault of this worker.
        continue
      }
      switch fault {
      case .nonsense, .illNonsense: send(connection, "NOT HTTP AT ALL\r\n\r\n")
      case .half:
        send(connection, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nten bytes.")
        _exit(9)
      case .halfStream:
        send(connection, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        usleep(200_000)  // So that the server forwards the half first.
        _exit(9)
      case .short: send(connection, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nten bytes.")
      case .long:
        send(connection, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more than that")
      case .twice: send(connection, whole("ok") + whole("again"))
      case .dies: _exit(9)
      case .neverListens, .neverAccepts, .neverReads: sleep(3600)  // The fault of this worker.
      }
    }
    close(connection)
  }

  private static func whole(_ body: String) -> String {
    "HTTP/1.1 200 OK\r\ncontent-length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  private static func send(_ connection: CInt, _ text: String) {
    let bytes = Array(text.utf8)
    _ = write(connection, bytes, bytes.count)
  }

  /// Reads the next request with its body and returns its head; nil at the end.
  private static func readRequest(_ connection: CInt) -> String? {
    var text = ""
    var buffer: [UInt8] = Array(repeating: 0, count: 65_536)
    while true {
      if let end = text.firstRange(of: "\r\n\r\n") {
        let head = text[..<end.lowerBound].lowercased()
        let length = head.split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
          .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) }
        if text[end.upperBound...].utf8.count >= length ?? 0 { return String(text) }
      }
      let count = read(connection, &buffer, buffer.count)
      guard count > 0 else { return nil }
      text += String(decoding: buffer.prefix(count), as: UTF8.self)
    }
  }

  /// Creates a listening Unix socket at a path, replacing any existing file.
  static func listen(at path: String, isOpen: Bool = true) -> CInt {
    unlink(path)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    #if canImport(Glibc)
      let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let listener = socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    guard isOpen else { return listener }
    let status = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    return status == 0 && LibC.listen(listener, 16) == 0 ? listener : -1
  }
}
