import ArgumentParser
import LibC
import Subprocess
import Synchronization

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// A command that shares this process's terminal and receives the signals meant for it.
final class AttachedCommand: Sendable {
  private let words: [String]
  /// The process while it runs.
  private let process = Mutex<ProcessIdentifier?>(nil)

  /// Creates a command from its words, with the program first.
  init(_ words: [String]) {
    self.words = words
  }

  /// Runs the command and returns its status, or 128 plus the number of the signal that ended it.
  func run(environment: [String: String]) async throws -> Int32 {
    let outcome: ExecutionResult<Void, FileDescriptorOutput, FileDescriptorOutput>
    do {
      outcome = try await Subprocess.run(
        words[0].contains("/") ? .path(FilePath(words[0])) : .name(words[0]),
        arguments: Arguments(Array(words.dropFirst())),
        environment: .inherit.updating(
          Dictionary(
            uniqueKeysWithValues: environment.map {
              (Environment.Key(stringLiteral: $0.key), $0.value)
            }
          )
        ),
        input: .currentStandardInput,
        output: .currentStandardOutput,
        error: .currentStandardError
      ) { execution in
        process.withLock { $0 = execution.processIdentifier }
      }
    } catch let error as SubprocessError {
      process.withLock { $0 = nil }
      Terminal.printError("\(words[0]) cannot be run: \(error)")
      return Self.cannotRun
    }
    process.withLock { $0 = nil }
    switch outcome.terminationStatus {
    case .exited(let code): return code
    case .signaled(let signal): return 128 + signal
    }
  }

  /// Runs `body` while signals go to the running command, or end `body` if there is none.
  ///
  /// Returns 128 plus the signal's number if a signal ended `body`. After that, another signal ends
  /// this process at once. May be called only once per process.
  func interruptible(_ body: @escaping @Sendable () async throws -> Int32) async throws -> Int32 {
    let (signals, received) = AsyncStream.makeStream(
      of: CInt.self,
      bufferingPolicy: .bufferingOldest(1)
    )
    SignalTrap.install([SIGINT, SIGTERM, SIGHUP, SIGQUIT]) { signal in
      if self.passOn(signal) { return .isReceived }
      received.yield(signal)
      return .ends
    }
    return try await withThrowingTaskGroup(of: Int32?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        for await signal in signals { return 128 + signal }
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next().flatMap { $0 } ?? 1
    }
  }

  /// Sends a signal to the running command; returns false if there is none.
  private func passOn(_ signal: CInt) -> Bool {
    process.withLock { process in
      guard let process else { return false }
      // On Ctrl-C, the terminal signals all foreground processes, including the command.
      if signal == SIGTERM || !Self.isForeground { kill(process.value, signal) }
      return true
    }
  }

  private static var isForeground: Bool {
    isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp()
  }

  /// The status that shells return for a program that does not exist.
  private static let cannotRun: Int32 = 127
}
