import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// Runs a program to its end, passing on its output line by line.
enum ChildProcess {
  /// How a program ended.
  struct Result: Sendable {
    var status: TerminationStatus
    /// The last lines of both outputs together, at most `tailLinesMax`.
    var tail: [String]
    /// Whether it was stopped because its time ran out.
    var timedOut: Bool

    var succeeded: Bool { status.isSuccess && !timedOut }
  }

  /// The program at an absolute path.
  static func program(_ path: String) -> Executable { .path(FilePath(path)) }

  /// Runs a program with arguments and returns when it has ended and all output is read.
  ///
  /// `environment` nil inherits the server's own. `onLine` gets every line of both outputs.
  /// Cancelling the task, or running out of time, kills the program.
  static func run(
    _ program: Executable,
    _ arguments: [String],
    environment: [String: String]? = nil,
    timeout: Duration? = nil,
    onLine: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws -> Result {
    try await withThrowingTaskGroup(of: Result?.self) { group in
      group.addTask {
        try await collect(program, arguments, environment: environment, onLine: onLine)
      }
      if let timeout {
        group.addTask {
          try await Task.sleep(for: timeout)
          return nil
        }
      }
      let first = try await group.next() ?? nil
      group.cancelAll()
      return first ?? Result(status: .exited(-1), tail: [], timedOut: true)
    }
  }

  private static func collect(
    _ program: Executable,
    _ arguments: [String],
    environment: [String: String]?,
    onLine: @escaping @Sendable (String) -> Void
  ) async throws -> Result {
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
    // A group of its own, so that a build's compilers end with it.
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
      error: .combinedWithOutput
    ) { execution in
      var tail: [String] = []
      for try await line in execution.standardOutput.strings(
        bufferingPolicy: .maxLineLength(lineBytesMax)
      ) {
        onLine(line)
        tail.append(line)
        if tail.count > tailLinesMax { tail.removeFirst() }
      }
      return tail
    }
    return Result(status: outcome.terminationStatus, tail: outcome.closureResult, timedOut: false)
  }

  /// A longer line is no message for a person.
  private static let lineBytesMax = 64 * 1024
  /// Enough for a compiler's errors or a crash, and bounded whatever the program prints.
  private static let tailLinesMax = 200
}
