import Events

/// The request that the arguments of a functions executable express.
enum ProcessArguments: Equatable {
  /// Serve the functions, with the flags that `WorkerSettings` reads.
  case serve
  case help
  /// Report an argument that the executable does not know.
  case unknown(String)

  /// Reads the arguments after the program's name.
  ///
  /// Skips the arguments that Xcode passes to programs: `-NS… VALUE` and `-Apple… VALUE`.
  init(_ arguments: [String]) {
    self = .serve
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      if argument == "--help" || argument == "-h" {
        self = .help
        return
      }
      if argument.hasPrefix("-NS") || argument.hasPrefix("-Apple") {
        _ = rest.popFirst()
        continue
      }
      let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = parts.first.map(String.init) ?? ""
      if WorkerSettings.flagVariables[name] != nil {
        if parts.count == 1 { _ = rest.popFirst() }
      } else if self == .serve {
        self = .unknown(argument)
      }
    }
  }

  /// The request of this process's arguments.
  static var ofProcess: ProcessArguments { .init(Array(CommandLine.arguments.dropFirst())) }

  /// True if this process has a single argument, which asks for help.
  static var isOnlyHelp: Bool {
    CommandLine.arguments.count == 2 && ofProcess == .help
  }

  /// The name with which this process was started, without its directory.
  static var program: String {
    CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "functions"
  }
}

extension FunctionsApp {
  /// Ends the process if its arguments ask for help or are invalid.
  func answerArguments() {
    let program = ProcessArguments.program
    switch ProcessArguments.ofProcess {
    case .serve: return
    case .help: StandardStreams.exit(printing: help(program: program))
    case .unknown(let argument):
      StandardStreams.exit(
        reporting: "\(program): unknown argument \(argument)\n\(Self.usage(program))",
        status: 2
      )
    }
  }

  /// Returns the text for `--help`.
  func help(program: String) -> String {
    let width = functions.map(\.name.count).max() ?? 0
    let names = functions.sorted { $0.name < $1.name }.map { function in
      let space = String(repeating: " ", count: width - function.name.count)
      return "  \(function.name)\(space)  \(Self.kind(of: function.trigger))"
    }
    return """
      \(program): functions for Cloud Run and for `hearth`, which starts it by itself.

      \(Self.usage(program))

      It serves the functions over HTTP until it gets SIGTERM. Flags come before their variables.

        --port, PORT                      the port; 8080 without it
        --target, FUNCTION_TARGET         the only function to serve; without it each is served below
                                          its name
        --signature-type, FUNCTION_SIGNATURE_TYPE
                                          how the target is called: http or cloudevent
        HEARTH_HUB                        the address of a running suite whose functions this process
                                          takes over, for debuggers
        FUNCTIONS_EMULATOR                true: tokens are the emulator's and are not verified
        GCLOUD_PROJECT                    the project whose tokens are accepted
        FUNCTIONS_MANIFEST_OUTPUT_PATH    write the functions' manifest there and end
        LOG_LEVEL                         trace, debug, info, notice, warning, error or critical

      Functions (\(functions.count)):
      \(names.joined(separator: "\n"))
      """
  }

  private static func usage(_ program: String) -> String {
    "Usage: \(program) [--port PORT] [--target FUNCTION] [--signature-type TYPE]"
  }

  private static func kind(of trigger: FunctionDefinition.Trigger) -> String {
    switch trigger {
    case .callable: "callable"
    case .typed: "JSON over HTTP"
    case .http: "HTTP"
    case .document(let type, let pattern): "\(type.name) of \(pattern)"
    case .value(let kind, _, let ref): "\(DatabaseEventType(kind).name) of \(ref)"
    case .cloudEvent(let filter): "event \(filter.type)"
    case .schedule(let schedule, _): "schedule \(schedule)"
    case .taskQueue: "task queue"
    case .blocking(let type): "Auth's \(type.rawValue)"
    }
  }
}
