import FlowControl
import Subprocess
import Synchronization
import WorkerPool

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// A runner for child programs that passes on their output line by line.
enum ChildProcess {
  /// The outcome of a program's run.
  struct Result: Sendable {
    var status: TerminationStatus
    /// The last lines of both outputs combined, at most `tailLinesMax` and `tailBytesMax`.
    var tail: [String]
    /// The standard output alone.
    ///
    /// Output beyond `outputLinesMax` or `keptOutputBytesMax` loses its beginning.
    var output: [String]
    /// True if the program was killed because its time ran out.
    var timedOut: Bool
    /// True if the program was killed because it wrote too much.
    var hasFlooded = false

    var succeeded: Bool { status.isSuccess && !timedOut && !hasFlooded }

    /// Returns as many of the last lines of both outputs as fit into `bytesMax`.
    func words(bytesMax: Int) -> String {
      var bytes = 0
      let lines = tail.reversed().prefix { line in
        bytes += line.utf8.count + 1
        return bytes <= bytesMax
      }
      return lines.reversed().joined(separator: "\n")
    }
  }

  /// The event that ended the wait for a program.
  private enum Ending {
    case exited(TerminationStatus)
    case timedOut
    case flooded
  }

  /// Returns the program at an absolute path.
  static func program(_ path: String) -> Executable { .path(FilePath(path)) }

  /// Runs a program, and returns when it has ended and all output has been read.
  ///
  /// If `environment` is nil, the program inherits the server's environment. `onLine` receives
  /// every line of both outputs. The program is killed if the task is cancelled, its time runs out,
  /// or it writes more than `outputBytesMax`.
  static func run(
    _ program: Executable,
    _ arguments: [String],
    environment: [String: String]? = nil,
    timeout: Duration? = nil,
    outputBytesMax: Int = .max,
    onLine: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws -> Result {
    let (floods, flood) = AsyncStream.makeStream(
      of: Void.self,
      bufferingPolicy: .bufferingNewest(1)
    )
    let lines = Lines(bytesMax: outputBytesMax, onLine: onLine) { flood.finish() }
    let ending = try await withThrowingTaskGroup(of: Ending.self) { group in
      group.addTask {
        .exited(try await collect(program, arguments, environment: environment, into: lines))
      }
      group.addTask {
        for await _ in floods {}
        try Task.checkCancellation()
        return .flooded
      }
      if let timeout {
        group.addTask {
          try await Task.sleep(for: timeout)
          return .timedOut
        }
      }
      defer { group.cancelAll() }
      // The group is never empty, so `next` does not return nil.
      return try await group.next() ?? .timedOut
    }
    return result(of: ending, lines)
  }

  private static func result(of ending: Ending, _ lines: Lines) -> Result {
    var result = Result(
      status: .exited(-1),
      tail: lines.tail,
      output: lines.output,
      timedOut: false
    )
    switch ending {
    case .exited(let status): result.status = status
    case .timedOut: result.timedOut = true
    case .flooded: result.hasFlooded = true
    }
    return result
  }

  private static func collect(
    _ program: Executable,
    _ arguments: [String],
    environment: [String: String]?,
    into lines: Lines
  ) async throws -> TerminationStatus {
    let custom = environment.map { environment in
      Environment.custom(
        Dictionary(
          uniqueKeysWithValues: environment.map {
            (Environment.Key(stringLiteral: $0.key), $0.value)
          }
        )
      )
    }
    var options = PlatformOptions()
    // The program has its own process group, so that a build's compilers are killed with it.
    options.createSession = true
    options.teardownSequence = [
      .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero)
    ]
    let outcome = try await Subprocess.run(
      program,
      arguments: Arguments(arguments),
      environment: custom ?? .inherit,
      platformOptions: options,
      input: .none,
      output: .sequence,
      error: .sequence
    ) { execution in
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await read(execution.standardOutput, into: lines, isError: false) }
        group.addTask { await read(execution.standardError, into: lines, isError: true) }
      }
    }
    return outcome.terminationStatus
  }

  private static func read(
    _ output: SubprocessOutputSequence,
    into lines: Lines,
    isError: Bool
  ) async {
    var splitter = LineSplitter(lineBytesMax: lineBytesMax)
    do {
      for try await piece in output {
        // Excess output is still read, so that the program can end, but it is dropped.
        guard lines.takes(piece.count) else { continue }
        let complete = piece.withUnsafeBytes { splitter.append($0) }
        for line in complete { lines.append(line, isError: isError) }
      }
    } catch {
      lines.append("(The rest of the output cannot be read: \(error))", isError: isError)
    }
    for line in splitter.finish() { lines.append(line, isError: isError) }
  }

  /// The lines that a running program has written to both of its outputs.
  private final class Lines: Sendable {
    private struct State {
      var tail = RecentElements<String>(countMax: tailLinesMax, bytesMax: tailBytesMax)
      var output = RecentElements<String>(
        countMax: outputLinesMax,
        bytesMax: keptOutputBytesMax
      )
      var bytesRead = 0
    }

    private let bytesMax: Int
    private let onLine: @Sendable (String) -> Void
    private let onFlood: @Sendable () -> Void
    private let state = Mutex(State())

    init(
      bytesMax: Int,
      onLine: @escaping @Sendable (String) -> Void,
      onFlood: @escaping @Sendable () -> Void
    ) {
      self.bytesMax = bytesMax
      self.onLine = onLine
      self.onFlood = onFlood
    }

    var tail: [String] { state.withLock { Array($0.tail) } }
    var output: [String] { state.withLock { Array($0.output) } }

    /// Counts bytes that were read; returns false once the program has written too much.
    func takes(_ bytes: Int) -> Bool {
      let isTooMuch = state.withLock { state in
        state.bytesRead += bytes
        return state.bytesRead > bytesMax
      }
      if isTooMuch { onFlood() }
      return !isTooMuch
    }

    func append(_ line: LineSplitter.Line, isError: Bool) {
      if line.bytesDropped > 0 { return }
      append(String(decoding: line.bytes, as: UTF8.self), isError: isError)
    }

    func append(_ text: String, isError: Bool) {
      let bytes = text.utf8.count + lineBytes
      state.withLock { state in
        state.tail.append(text, bytes: bytes)
        if !isError { state.output.append(text, bytes: bytes) }
      }
      onLine(text)
    }
  }

  /// The maximum length of a line, enough for a linker's command line; longer ones are cut.
  private static let lineBytesMax = 128 * 1024
  /// The memory of a kept line in addition to its text: its slot and an allocation.
  private static let lineBytes = 48
  /// The number of lines kept, enough for a compiler's errors or a crash.
  private static let tailLinesMax = 200
  /// The size of the kept lines, which become part of an error message.
  private static let tailBytesMax = 256 << 10
  /// The number of output lines kept, enough to describe a package with a thousand targets.
  private static let outputLinesMax = 50_000
  /// The size of the kept output; descriptions and manifests are far smaller.
  private static let keptOutputBytesMax = 16 << 20
}
