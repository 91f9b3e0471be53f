/// Commands and options of other tools, Firebase's above all, for people who still type them.
enum ForeignCommand {
  /// Returns what to type in place of a command; nil if the word is none of another tool's.
  static func advice(for word: String) -> String? {
    if let command = equivalents[word] {
      return "That is Firebase's command; Hearth's is `hearth \(command)`."
    }
    if let sentence = sentences[word] {
      return "There is no command `hearth \(word)`. \(sentence)"
    }
    let service = word.prefix { $0 != ":" }
    if needless.contains(String(service)) {
      return "Hearth needs no `\(word)`: it never contacts Google, and downloads nothing."
    }
    return services[String(service)].map {
      "Hearth has no \($0). Use Firebase's tools beside it: `firebase \(word)`."
    }
  }

  /// Returns what to do in place of an option that a command does not have.
  static func advice(forOption option: String, of command: String) -> String? {
    switch (command, option) {
    case ("hearth start", "--only"), ("hearth exec", "--only"):
      "All emulators always run; --no-functions leaves the functions out."
    case ("hearth start", "--port"), ("hearth start", "-p"):
      """
      Each service has a port of its own: --ui-port, --hub-port, --functions-port, \
      --firestore-port, --database-port, --auth-port, --tasks-port, --vectors-port; --free-ports \
      takes free ones.
      """
    case ("hearth exec", "--port"), ("hearth exec", "--free-ports"):
      "It always takes free ports; the command finds them in its environment."
    case ("hearth start", "--inspect-functions"):
      "The debugger runs the functions itself; see docs/debugging.md."
    case ("hearth", "-v"), ("hearth", "-V"): "`hearth --version` prints the version."
    case ("hearth clock advance", "--to"), ("hearth clock advance", "--by"):
      "Give only the time or the duration: `hearth clock advance 24h`."
    case ("hearth doctor", "--fix"):
      "It changes nothing; the report says how to fix each problem."
    case ("hearth functions run", "--at"), ("hearth functions run", "--in"):
      "It runs the function now; `hearth clock advance` lets the time of its schedule come."
    case ("hearth logs", "-f"), ("hearth functions logs", "-f"), ("hearth logs", "--tail"),
      ("hearth functions logs", "--tail"), ("hearth logs", "-n"), ("hearth functions logs", "-n"):
      "--follow continues with new lines; --limit N prints the last N lines."
    case ("hearth call", "--region"), ("hearth fire", "--region"), ("hearth enqueue", "--region"):
      "The name finds the function, whatever its region."
    case ("hearth auth create", "--email"):
      "Give only the address: `hearth auth create tina@example.com --password secret1`."
    case (_, "--debug"): "--verbose also logs decisions, where a command has it."
    case (_, "-P"): "--project names the project, where a command has it."
    default: nil
    }
  }

  /// Returns the option that was probably meant by a word that a command has no argument for.
  static func option(for word: String, of command: String) -> String? {
    let isJSON = ["{", "[", "\"", "@"].contains(word.first)
    let isAssignment = word.contains("=") && !isJSON
    switch command {
    case "hearth call", "hearth enqueue", "hearth fire":
      if isAssignment { return "--data \(JSONInput.shellObject(of: word))" }
      if isJSON { return "--data \(word.shellWord)" }
      if command == "hearth call" { return "--as \(word.shellWord)" }
      return command == "hearth fire" && word.contains("/") ? "--document \(word.shellWord)" : nil
    case "hearth auth create":
      if isAssignment { return "--claims \(JSONInput.shellObject(of: word))" }
      return (isJSON ? "--claims " : "--password ") + word.shellWord
    case "hearth events", "hearth events list":
      let option = Events.states.contains(word) ? "--state" : "--function"
      return "\(option) \(word.shellWord)"
    default: return nil
    }
  }

  private static let equivalents = [
    "emulators:start": "start", "serve": "start", "emulators:exec": "exec",
    "emulators:export": "export", "functions:list": "functions list", "functions:log": "logs",
    "functions:delete": "functions delete", "firestore:indexes": "indexes",
    "firestore:rules": "rules", "config": "functions config",
    "functions:config:set": "functions config set",
    "functions:config:get": "functions config", "functions:config:unset": "functions config unset",
    "database:import": "import FILE --database", "database:set": "import FILE --database",
    "secrets": "functions config set --secret",
    "functions:secrets:set": "functions config set --secret",
    "functions:secrets:access": "functions config",
    "functions:secrets:destroy": "functions config unset --secret",
  ]

  /// The advice for words that no single command of Hearth stands for.
  private static let sentences = [
    "auth:export": "Users are part of an export: `hearth export DIR`.",
    "auth:import": """
    A file of users alone cannot be imported. Users are part of an export: `hearth import DIR` \
    reads the folder of `firebase emulators:export DIR --only auth`. `hearth auth create` \
    creates single users.
    """,
    "clear": emptying, "database:get": tree, "database:push": tree, "database:remove": tree,
    "database:update": tree, "console": console, "emulators:stop": stopping,
    "firestore:delete": emptying, "functions:shell": invoking, "kill": stopping, "open": console,
    "reset": emptying,
    "restart": "\(stopping) Then start it again; its data are kept.",
    "run": invoking, "shell": invoking,
    "status": """
    `hearth doctor` checks the suite, `hearth top` shows what its functions do, and \
    `hearth events list` what became of events.
    """,
    "stop": stopping, "tail": "`hearth logs --follow` continues with new lines.",
    "test": """
    `swift test` runs the tests of functions, `hearth rules test` those of security rules, and \
    `hearth exec -- COMMAND` any tests with a suite of their own.
    """,
    "ui": console,
    "use": "Set the project as projects.default in .firebaserc, or with --project ID.",
    "version": "`hearth --version` prints the version.",
  ]

  private static let console =
    "`hearth start` prints the address of the console, by default http://127.0.0.1:4000."

  private static let emptying = """
    To delete all data, stop the suite and remove its data folder, .hearth. To delete only all \
    documents, all users or a Realtime Database while it runs, with the ports that `hearth start` \
    printed:
      curl -X DELETE 'http://127.0.0.1:8080/emulator/v1/projects/PROJECT/databases/\
    (default)/documents'
      curl -X DELETE http://127.0.0.1:9099/emulator/v1/projects/PROJECT/accounts
      curl -X DELETE -H 'Authorization: Bearer owner' \
    'http://127.0.0.1:9000/.json?ns=PROJECT-default-rtdb'
    Single documents are deleted in the console.
    """

  private static let tree = """
    The Realtime Database is read and written over REST, with the port that `hearth start` printed:
      curl -H 'Authorization: Bearer owner' \
    'http://127.0.0.1:9000/PATH.json?ns=PROJECT-default-rtdb'
    -X PUT, PATCH, POST or DELETE writes, with the JSON as -d '…'.
    """

  private static let invoking = """
    `hearth call NAME` calls a callable, `hearth fire NAME` sends an event to a trigger, \
    `hearth enqueue NAME` gives a task, and `hearth functions run NAME` runs a schedule.
    """

  private static let stopping = """
    Ctrl-C in the terminal of `hearth start` stops the suite, or `kill PID` with the pid that \
    `hearth doctor` shows.
    """

  /// The first parts of commands for accounts, projects and downloads.
  private static let needless: Set = [
    "apps", "experiments", "login", "logout", "projects", "setup", "target",
  ]

  /// What the first parts of the commands of other services stand for.
  private static let services = [
    "appcheck": "App Check", "appdistribution": "App Distribution", "apphosting": "App Hosting",
    "crashlytics": "Crashlytics", "dataconnect": "Data Connect",
    "ext": "Extensions", "hosting": "Hosting", "messaging": "Cloud Messaging",
    "pubsub": "Pub/Sub", "remoteconfig": "Remote Config", "storage": "Cloud Storage",
  ]
}
