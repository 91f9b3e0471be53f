import Dispatch
// The C libraries declare `stdout` as a variable, which Swift treats as shared mutable state.
@preconcurrency import LibC
import Synchronization

/// The standard streams of the worker, which connect it to the server that started it.
enum StandardStreams {
  private static let outputLock = Mutex<Void>(())

  /// Makes `print` write each line immediately, so that a crash loses no line.
  ///
  /// Without this, output to a pipe is buffered in blocks.
  static func bufferByLine() {
    setvbuf(stdout, nil, _IOLBF, 4096)
  }

  /// Writes whole lines without mixing them with other lines of the process.
  ///
  /// Blocks while the reader is slow. Otherwise the pending log lines would grow without limit.
  static func writeToOutput(_ line: [UInt8]) {
    outputLock.withLock { _ in writeAll(line, to: STDOUT_FILENO) }
  }

  /// Prints a problem on standard error and ends the process, with status 1 unless given otherwise.
  static func exit(reporting problem: String, status: Int32 = 1) -> Never {
    writeAll(Array("\(problem)\n".utf8), to: STDERR_FILENO)
    exit(status)
  }

  /// Prints the requested text on standard output and ends the process with status 0.
  static func exit(printing text: String) -> Never {
    writeAll(Array("\(text)\n".utf8), to: STDOUT_FILENO)
    exit(0)
  }

  private static func exit(_ status: Int32) -> Never {
    LibC.exit(status)
  }

  /// Ends the process when standard input ends, because then the server that started it is gone.
  ///
  /// A separate thread blocks on the read until that happens.
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
        // Another process made the shared descriptor non-blocking.
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&waiting, 1, -1)
      } else if errno != EINTR {
        // The reader is gone, so the failure cannot be reported to anyone.
        return
      }
    }
  }
}
