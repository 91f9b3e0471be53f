/// Commands of Firebase's tools, for people whose fingers still type them.
enum FirebaseCommand {
  /// Returns what to type in place of a command; nil if it is none of Firebase's tools.
  static func advice(for word: String) -> String? {
    equivalents[word].map { "That is Firebase's command; Hearth's is `hearth \($0)`." }
      ?? (needless.contains(word) ? "Hearth needs no `\(word)`: it never contacts Google." : nil)
  }

  /// Returns what to do in place of an option of Firebase's that a command does not have.
  static func advice(forOption option: String, of command: String) -> String? {
    switch (command, option) {
    case ("hearth start", "--only"), ("hearth exec", "--only"):
      "All emulators always run; --no-functions leaves the functions out."
    case (_, "--debug"): "--verbose also logs decisions, where a command has it."
    case ("hearth start", "--inspect-functions"):
      "The debugger runs the functions itself; see docs/debugging.md."
    default: nil
    }
  }

  private static let equivalents = [
    "emulators:start": "start", "serve": "start", "emulators:exec": "exec",
    "emulators:export": "export", "auth:export": "export", "auth:import": "import",
    "functions:list": "functions list", "functions:log": "logs", "functions:shell": "fire",
    "functions:delete": "functions delete", "firestore:indexes": "indexes",
    "firestore:rules": "rules", "config": "functions config",
    "functions:config:set": "functions config set",
    "functions:config:get": "functions config", "functions:config:unset": "functions config unset",
    "secrets": "functions config set --secret",
    "functions:secrets:set": "functions config set --secret",
    "functions:secrets:access": "functions config",
    "functions:secrets:destroy": "functions config unset --secret",
  ]

  private static let needless: Set = [
    "login", "login:ci", "logout", "use", "projects:list", "projects:create", "apps:list",
  ]
}
