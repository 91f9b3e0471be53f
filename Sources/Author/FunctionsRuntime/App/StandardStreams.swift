import Dispatch
import Synchronization

// The C libraries declare `stdout` as a variable, which Swift takes for shared mutable state.
#if canImport(Darwin)
  @preconcurrency import Darwin
#elseif canImport(Glibc)
  @preconcurrency import Glibc
#elseif canImport(Musl)
  @preconcurrency import Musl
#endif

/// The worker's standard streams, which connect it to the server that started it.
enum StandardStreams {
  private static let outputLock = Mutex<Void>(())

  /// Makes `print` hand over each line at once, so that a crash loses none.
  ///
  /// A pipe would otherwise be buffered by blocks.
  static func bufferByLine() {
    setvbuf(stdout, nil, _IOLBF, 4096)
  }

  /// Writes whole lines, which never mix with the process's other lines.
  ///
  /// Blocks while the reader is slow: a log that outran its reader would have no bound.
  static func writeToOutput(_ line: [UInt8]) {
    outputLock.withLock { _ in writeAll(line, to: STDOUT_FILENO) }
  }

  /// Reports a problem and ends the process, with status 1 unless it is a wrong use of it.
  static func exit(reporting problem: String, status: Int32 = 1) -> Never {
    writeAll(Array("\(problem)\n".utf8), to: STDERR_FILENO)
    exit(status)
  }

  /// Prints what was asked for and ends the process with status 0.
  static func exit(printing text: String) -> Never {
    writeAll(Array("\(text)\n".utf8), to: STDOUT_FILENO)
    exit(0)
  }

  private static func exit(_ status: Int32) -> Never {
    #if canImport(Darwin)
      Darwin.exit(status)
    #elseif canImport(Glibc)
      Glibc.exit(status)
    #elseif canImport(Musl)
      Musl.exit(status)
    #endif
  }

  /// Ends the process at once when standard input ends, because the server that started it is gone.
  ///
  /// Until then a thread of its own blocks on the read.
  static func exitWhenInputEnds() {
    DispatchQueue(label: "standard input").async {
      var buffer: [UInt8] = Array(repeating: 0, count: 256)
      while true {
        let count = read(STDIN_FILENO, &buffer, buffer.count)
        if count == 0 || (count < 0 && errno != EINTR) { _exit(0) }
      }
    }
  }

  private static func writeAll(_ bytes: [UInt8], to descriptor: CInt) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        // Another process has made the shared descriptor non-blocking.
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&waiting, 1, -1)
      } else if errno != EINTR {
        // Nobody reads any more, so there is nobody to tell.
        return
      }
    }
  }
}
