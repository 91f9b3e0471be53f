import ArgumentParser
import Identifiers

/// The explanation of a command line that cannot be parsed, where the parser's own falls short.
enum WrongCommandLine {
  /// Returns the explanation; nil if the parser's message, which is `complaint`, is better.
  static func explanation(
    of arguments: [String],
    complaint: String,
    root: any ParsableCommand.Type = Hearth.self
  ) -> String? {
    var command = root
    var path = root._commandName
    for (place, word) in arguments.enumerated() {
      let commands = command.configuration.subcommands
      guard !commands.isEmpty, !word.hasPrefix("-") else {
        return firebaseOption(arguments[place...], path, complaint)
          ?? dataWithoutJSON(arguments[place...], complaint)
          ?? numberBelowZero(arguments[place...], path, complaint)
      }
      let names = commands.filter { $0.configuration.shouldDisplay }.map { $0._commandName }
      guard let next = commands.first(where: { $0._commandName == word }) else {
        // A default command may take the word as an argument and complain of something else.
        let isRefused = complaint.contains("nexpected argument") && complaint.contains("'\(word)'")
        guard isRefused || command.configuration.defaultSubcommand == nil else { return nil }
        if path == root._commandName, let advice = FirebaseCommand.advice(for: word) {
          return advice
        }
        let meant = NearestName.of(word, among: names).map { " Did you mean `\(path) \($0)`?" }
        return """
          There is no command `\(path) \(word)`.\(meant ?? "")
          Commands: \(names.joined(separator: ", ")). `\(path) --help` describes them.
          """
      }
      command = next
      path += " \(word)"
    }
    return nil
  }

  /// Returns the advice for an option that only Firebase's tools have.
  private static func firebaseOption(
    _ arguments: ArraySlice<String>,
    _ path: String,
    _ complaint: String
  ) -> String? {
    arguments.prefix { $0 != "--" }.first { $0.hasPrefix("--") && complaint.contains("'\($0)'") }
      .flatMap { option in
        FirebaseCommand.advice(forOption: option, of: path).map {
          "`\(path)` has no \(option). \($0)"
        }
      }
  }

  /// Returns the explanation of a `--data` that took another option for its JSON.
  ///
  /// It takes any next word, because JSON may begin with a minus sign; the parser then complains of
  /// the other option's value.
  private static func dataWithoutJSON(
    _ arguments: ArraySlice<String>,
    _ complaint: String
  ) -> String? {
    guard complaint.contains("nexpected argument") else { return nil }
    let words = arguments.prefix { $0 != "--" }
    return zip(words, words.dropFirst()).first { $0 == "--data" && $1.hasPrefix("--") }.map {
      "--data is not JSON: the word after it is \($1). Give JSON, @FILE or - for stdin."
    }
  }

  /// Returns the refusal of `clock advance -1h`, which the parser takes for the option `-h`.
  static func negativeJump(_ arguments: [String]) -> String? {
    guard arguments.starts(with: ["clock", "advance"]) else { return nil }
    return arguments.first { $0.hasPrefix("-") && $0.dropFirst().first?.isNumber == true }
      .map(TimeSpan.onlyForward)
  }

  /// Returns the explanation of a number below 0, which the parser takes for an option.
  private static func numberBelowZero(
    _ arguments: ArraySlice<String>,
    _ path: String,
    _ complaint: String
  ) -> String? {
    guard complaint.contains("option") || complaint.contains("Missing") else { return nil }
    let isNumber = { (word: String) in
      word.first == "-" && word.dropFirst().first.map { ("0"..."9").contains($0) } == true
    }
    let words = arguments.prefix { $0 != "--" }
    // The number after `--data` is JSON, so the parser complains of something else.
    let number = zip([""] + words, words).first { $0 != "--data" && isNumber($1) }?.1
    guard let number else { return nil }
    guard path == "hearth clock advance" else {
      return "\(number) is below 0, and no option of `\(path)` takes such a number."
    }
    return TimeSpan.onlyForward(number)
  }
}
