import ArgumentParser
import CMemory
import LibC

/// `hearth`: the command line of the emulator suite.
@main
struct Hearth: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hearth",
    abstract: "Run Swift functions and the Firebase services they use, on your own machine.",
    discussion: """
      A first session:

        hearth start                     the suite, with the functions of this folder
        hearth functions list            what is deployed, and where it answers
        hearth call greeting --as alice --data '{"isLoud": true}'
        hearth logs welcome
        hearth events list               every event and what became of it

      Commands find the running suite by --hub, FIREBASE_EMULATOR_HUB, .hearth/server.json in \
      this folder, then Firebase's locator file of the project.

      Exit codes: 0 done, 1 what was asked for failed, 2 wrong usage, 3 no running suite found.
      """,
    version: Version.current,
    subcommands: [
      Init.self, Start.self, Exec.self, Deploy.self, Call.self, Fire.self, Enqueue.self,
      Functions.self,
      Auth.self, Logs.self, Top.self, Events.self, Clock.self, Faults.self, Indexes.self,
      Rules.self,
      Export.self, Import.self, Production.self, Doctor.self,
    ]
  )

  static func main() async {
    hearth_return_freed_memory()
    DescriptorLimit.raise()
    do {
      var command = try await asyncParseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      Terminal.flush()
    } catch let failure as CommandError {
      Terminal.printError(failure.message)
      Exit.leave(failure.code)
    } catch let code as ExitCode {
      Exit.leave(status: code.rawValue)
    } catch {
      let code = exitCode(for: error)
      let text = fullMessage(for: error)
      let arguments = Array(CommandLine.arguments.dropFirst())
      if code == .success, let refusal = WrongCommandLine.negativeJump(arguments) {
        Terminal.printError(refusal)
        Exit.leave(.usage)
      }
      guard code != .success else {
        Terminal.print(text)
        Exit.leave(.done)
      }
      guard code == .validationFailure else {
        Terminal.printError(text)
        Exit.leave(.failed)
      }
      Terminal.printError(
        WrongCommandLine.explanation(of: arguments, complaint: text) ?? text
      )
      Exit.leave(.usage)
    }
  }
}

/// The failure of a command; its message is printed unchanged.
struct CommandError: Error {
  var message: String
  var code: Exit
  /// The name of the status of the suite's refusal, such as `NOT_FOUND`; nil for other failures.
  var status: String?

  /// Creates a failure; the message should say how to fix the problem.
  init(_ message: String, _ code: Exit = .failed, status: String? = nil) {
    self.message = message
    self.code = code
    self.status = status
  }
}

/// The exit codes that scripts can rely on.
enum Exit: Int32 {
  case done = 0
  case failed = 1
  case usage = 2
  case noServer = 3

  /// Ends the process with an exit code, after all output is written.
  static func leave(_ code: Exit) -> Never { leave(status: code.rawValue) }

  /// Ends the process with a status, for example of another program, after all output is written.
  static func leave(status: Int32) -> Never {
    Terminal.flush()
    exit(status)
  }
}

/// The version that `--version` and the hub report.
enum Version {
  static let current = "0.1.0"
}
