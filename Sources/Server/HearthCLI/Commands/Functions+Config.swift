import ArgumentParser
import Deployment
import Foundation

extension Functions {
  /// `hearth functions config`: shows and changes variables and secrets on this machine.
  struct Config: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show and change the variables and secrets that functions are given here.",
      discussion: """
          hearth functions config get
          hearth functions config set CHAT_MODEL=gpt-4o-mini
          hearth functions config set --secret OPENAI_KEY
          hearth functions config unset CHAT_MODEL

        Variables are in .env, .env.PROJECT and .env.local of the functions' folder, and every \
        function sees them. Secrets are in .secret.local, and only the functions that declare a \
        secret see it. `set` and `unset` change .env.local and .secret.local.
        """,
      subcommands: [Get.self, Set.self, Unset.self],
      defaultSubcommand: Get.self
    )

    /// The options that locate the configuration files.
    struct Source: ParsableArguments {
      @Option(help: "The project; by default that of .firebaserc, else demo-no-project.")
      var project: String?

      func configuration() throws -> LocalConfiguration {
        let files = try ProjectFiles.ofWorkingFolder()
        guard let folder = files.functionsSource else {
          throw CommandError(
            files.exists
              ? "\(files.folder)/firebase.json names no functions; set functions.source in it."
              : "There is no firebase.json here or in a parent folder; run this in your project, or "
                + "write one with `hearth init DIR`."
          )
        }
        return LocalConfiguration(
          folder: folder,
          project: project ?? files.defaultProject ?? ProjectID.standard
        )
      }
    }

    /// `hearth functions config get`.
    struct Get: AsyncParsableCommand {
      static let configuration = CommandConfiguration(
        abstract: "Print one value, or all with where they come from.",
        discussion: """
            hearth functions config get CHAT_MODEL
            hearth functions config get --reveal
          """
      )

      @OptionGroup var source: Source

      @Argument(help: "The name; all when left out.")
      var name: String?

      @Flag(help: "Print secrets, too.")
      var reveal = false

      func run() async throws {
        let settings = try convertingErrors { try source.configuration().settings() }
        func value(_ setting: LocalConfiguration.Setting) -> String {
          guard setting.isSecret, !reveal else { return setting.value }
          return setting.value.isEmpty ? "(not set)" : "(set)"
        }
        guard let name else {
          guard !settings.isEmpty else {
            Terminal.note("Nothing is set; `hearth functions config set NAME=VALUE` does.")
            return
          }
          Terminal.print(
            Terminal.table(
              ["NAME", "VALUE", "FROM"],
              settings.map { [$0.name, value($0), $0.source] }
            )
          )
          return
        }
        let found = settings.filter { $0.name == name }
        guard !found.isEmpty else { throw CommandError("\(name) is not set.") }
        // A secret takes precedence in the functions that declare it.
        if let setting = found.last { Terminal.print(value: value(setting)) }
      }
    }

    /// `hearth functions config set`.
    struct Set: AsyncParsableCommand {
      static let configuration = CommandConfiguration(
        abstract: "Set variables, or secrets with --secret.",
        discussion: """
            hearth functions config set CHAT_MODEL=gpt-4o-mini
            hearth functions config set --secret OPENAI_KEY
            hearth functions config set --secret SIGNING_KEY < key.pem

          A name without a value asks for it at a terminal, where a secret is not shown; otherwise \
          the value is what standard input holds, which may have several lines. Line ends at its \
          end are left out. The value of a secret is never taken from the command line, because \
          the shell keeps it in its history and `ps` shows it.
          """
      )

      @OptionGroup var source: Source

      @Argument(help: "NAME=VALUE, or NAME to be asked for the value.")
      var assignments: [String]

      @Flag(help: "Keep them in .secret.local, for the functions that declare them.")
      var secret = false

      func validate() throws {
        let parts = assignments.map(Self.parts)
        if secret, let name = parts.first(where: { $0.value != nil })?.name {
          throw ValidationError(
            """
            The value of a secret does not belong on the command line: the shell keeps it in its \
            history, and `ps` shows it. To be asked for it, or to take it from a file:
              hearth functions config set --secret \(name)
              hearth functions config set --secret \(name) < FILE
            """
          )
        }
        guard parts.count(where: { $0.value == nil }) <= 1 || TerminalPrompt.isPossible else {
          throw ValidationError(
            secret
              ? "Standard input holds one value; set one secret at a time."
              : "Standard input holds one value; give the others as NAME=VALUE."
          )
        }
      }

      func run() async throws {
        let configuration = try source.configuration()
        for assignment in assignments {
          let (name, given) = Self.parts(of: assignment)
          // Nobody should type a value for nothing.
          try Self.check(name)
          let value = try given ?? enteredValue(of: name)
          let file = try convertingErrors {
            try configuration.set(name, to: value, isSecret: secret)
          }
          Terminal.note("\(name) is set in \(file).")
        }
        Terminal.note(Config.advice)
      }

      /// Throws unless a name is one of variables; proposes one for the dots and hyphens of others.
      private static func check(_ name: String) throws {
        do {
          try LocalConfiguration.check(name)
        } catch let error as DeploymentError {
          let proposal = String(
            name.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
          )
          // A proposal that is refused, too, is of no use.
          let isFine = proposal != name && (try? LocalConfiguration.check(proposal)) != nil
          throw CommandError(error.message + (isFine ? " Did you mean \(proposal)?" : ""))
        }
      }

      /// Splits an assignment at its first `=`, which a combining mark may follow.
      private static func parts(of assignment: String) -> (name: String, value: String?) {
        let scalars = assignment.unicodeScalars
        guard let equals = scalars.firstIndex(of: "=") else { return (assignment, nil) }
        return (String(scalars[..<equals]), String(scalars[scalars.index(after: equals)...]))
      }

      /// Returns a value that is not empty, from a person or from standard input.
      private func enteredValue(of name: String) throws -> String {
        let isAsked = TerminalPrompt.isPossible
        let bytes =
          isAsked
          ? try TerminalPrompt.ask(for: name, isHidden: secret)
          : try bytesOfStandardInput(for: name)
        guard var text = String(validating: bytes, as: UTF8.self)?.unicodeScalars else {
          throw CommandError("The value of \(name) is not UTF-8; nothing was changed.")
        }
        while let last = text.last, last == "\n" || last == "\r" { text.removeLast() }
        guard text.contains(where: { !$0.properties.isWhitespace }) else {
          throw CommandError(
            (isAsked ? "Nothing was entered for \(name)" : "Standard input is empty")
              + ", so nothing was changed. "
              + (secret
                ? "`hearth functions config unset --secret \(name)` removes a secret."
                : "Give \(name)=VALUE, or the value on standard input; "
                  + "`hearth functions config set \(name)=` makes a variable empty.")
          )
        }
        return String(text)
      }

      private func bytesOfStandardInput(for name: String) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let part = try FileHandle.standardInput.read(upToCount: 1 << 16), !part.isEmpty {
          bytes += part
          guard bytes.count <= LocalConfiguration.valueBytesMax else {
            throw CommandError(
              "The value of \(name) is longer than \(LocalConfiguration.valueBytesMax) bytes; "
                + "nothing was changed."
            )
          }
        }
        return bytes
      }
    }

    /// `hearth functions config unset`.
    struct Unset: AsyncParsableCommand {
      static let configuration = CommandConfiguration(
        abstract: "Remove variables from .env.local, or secrets from .secret.local.",
        discussion: "  hearth functions config unset CHAT_MODEL"
      )

      @OptionGroup var source: Source

      @Argument(help: "The names.")
      var names: [String]

      @Flag(help: "Remove them from .secret.local.")
      var secret = false

      func run() async throws {
        let configuration = try source.configuration()
        for name in names {
          let file = try convertingErrors { try configuration.unset(name, isSecret: secret) }
          guard let file else {
            let other = try convertingErrors {
              try configuration.settings().last { $0.name == name }
            }
            let hint = other.map { "; it is in \($0.source)" } ?? ""
            throw CommandError("\(name) is not set there\(hint).")
          }
          Terminal.note("\(name) is gone from \(file).")
        }
        Terminal.note(Config.advice)
      }
    }

    /// The hint on when a change takes effect.
    static let advice =
      "Running functions see it after `hearth deploy`, or at once with `hearth start --watch`."
  }
}

/// Runs `body` and converts an error of the deployment into a command failure.
private func convertingErrors<Value>(_ body: () throws -> Value) throws -> Value {
  do {
    return try body()
  } catch let error as DeploymentError {
    throw CommandError(error.message)
  }
}
