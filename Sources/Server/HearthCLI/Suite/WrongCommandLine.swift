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
      let rest = arguments[place...].prefix { $0 != "--" }
      guard !commands.isEmpty, !word.hasPrefix("-") else {
        return optionBeforeCommand(rest, path, commands, complaint)
          ?? dataWithoutJSON(rest, complaint)
          ?? numberBelowZero(rest, path, complaint)
          ?? unexpectedArgument(rest, path, complaint)
          ?? unknownOption(rest, path, command, complaint, root)
      }
      let names = commands.filter { $0.configuration.shouldDisplay }.map { $0._commandName }
      guard let next = commands.first(where: { $0._commandName == word }) else {
        // A default command may take the word as an argument and complain of something else.
        let isRefused = complaint.contains("nexpected argument") && complaint.contains("'\(word)'")
        guard isRefused || command.configuration.defaultSubcommand == nil else {
          return unknownOption(rest, path, command, complaint, root)
        }
        if path == root._commandName, let advice = ForeignCommand.advice(for: word) {
          return advice
        }
        let nearest = NearestName.of(word, among: names)
        if nearest == nil, let meant = unexpectedArgument(rest, path, complaint) { return meant }
        let question = nearest.map { " Did you mean `\(path) \($0)`?" } ?? ""
        return """
          There is no command `\(path) \(word)`.\(question)
          Commands: \(names.joined(separator: ", ")). `\(path) --help` describes them.
          """
      }
      command = next
      path += " \(word)"
    }
    return nil
  }

  /// Returns the explanation of options that stand before the command that takes them.
  private static func optionBeforeCommand(
    _ words: ArraySlice<String>,
    _ path: String,
    _ commands: [any ParsableCommand.Type],
    _ complaint: String
  ) -> String? {
    guard let option = words.first, option.hasPrefix("-"),
      let place = words.firstIndex(where: { word in commands.contains { $0._commandName == word } })
    else { return nil }
    let isRefused =
      complaint.contains("Unknown option '\(name(of: option))'")
      || complaint.contains("nexpected argument '\(words[place])'")
    guard isRefused else { return nil }
    let line = ([path] + (words[place...] + words[..<place]).map(\.shellWord))
    return "Options stand after the command: `\(line.joined(separator: " "))`."
  }

  /// Returns the explanation of a `--data` that took another option for its JSON.
  ///
  /// It takes any next word, because JSON may begin with a minus sign; the parser then complains of
  /// the other option's value.
  private static func dataWithoutJSON(
    _ words: ArraySlice<String>,
    _ complaint: String
  ) -> String? {
    guard complaint.contains("nexpected argument") else { return nil }
    return zip(words, words.dropFirst()).first { $0 == "--data" && $1.hasPrefix("--") }.map {
      "--data is not JSON: the word after it is \($1). Give JSON, @FILE or - for stdin."
    }
  }

  /// Returns the refusal of `clock advance -1h`, which the parser takes for the option `-h`.
  static func negativeJump(_ arguments: [String]) -> String? {
    guard arguments.starts(with: ["clock", "advance"]) else { return nil }
    return arguments.first(where: isNegativeNumber).map(TimeSpan.onlyForward)
  }

  private static func isNegativeNumber(_ word: String) -> Bool {
    word.first == "-" && word.dropFirst().first.map { ("0"..."9").contains($0) } == true
  }

  /// Returns the explanation of a number below 0, which the parser takes for an option.
  private static func numberBelowZero(
    _ words: ArraySlice<String>,
    _ path: String,
    _ complaint: String
  ) -> String? {
    guard complaint.contains("option") || complaint.contains("Missing") else { return nil }
    // The number after `--data` is JSON, so the parser complains of something else.
    let number = zip([""] + words, words).first { $0 != "--data" && isNegativeNumber($1) }?.1
    guard let number else { return nil }
    guard path == "hearth clock advance" else {
      return "\(number) is below 0, and no option of `\(path)` takes such a number."
    }
    return TimeSpan.onlyForward(number)
  }

  /// Returns the explanation of a word that an option was meant to take.
  private static func unexpectedArgument(
    _ words: ArraySlice<String>,
    _ path: String,
    _ complaint: String
  ) -> String? {
    // The parser names one word or several.
    guard complaint.contains("nexpected argument"),
      let word = words.first(where: { complaint.contains("'\($0)'") }),
      let option = ForeignCommand.option(for: word, of: path),
      !words.contains(where: { option.hasPrefix("\($0) ") })
    else { return nil }
    return "`\(path)` takes no argument \(word.shellWord). Did you mean \(option)?"
  }

  /// Returns the explanation of an option that a command does not have.
  ///
  /// The parser suggests options that have nothing in common with a short one, and checks the
  /// values before it complains of an unknown option.
  private static func unknownOption(
    _ words: ArraySlice<String>,
    _ path: String,
    _ command: any ParsableCommand.Type,
    _ complaint: String,
    _ root: any ParsableCommand.Type
  ) -> String? {
    let known = options(of: command, root)
    let unknown = zip([""] + words, words).first { before, word in
      guard before != "--data", word.first == "-", word != "-" else { return false }
      return !known.contains(name(of: word))
    }
    guard let option = (unknown?.1).map(name(of:)) else { return nil }
    if let advice = ForeignCommand.advice(forOption: option, of: path) {
      return "`\(path)` has no \(option). \(advice)"
    }
    let bare = { (name: String) in String(name.drop { $0 == "-" }) }
    let long = known.filter { $0.hasPrefix("--") }.map(bare)
    let nearest = option.hasPrefix("--") ? NearestName.of(bare(option), among: long) : nil
    let question = nearest.map { " Did you mean '--\($0)'?" } ?? ""
    let usage = complaint.drop { $0 != "\n" }
    guard complaint.contains("Unknown option '\(option)'") else {
      return nearest == nil ? nil : "Error: Unknown option '\(option)'.\(question)\(usage)"
    }
    let end = complaint.firstRange(of: ". Did you mean")?.lowerBound ?? usage.startIndex
    let text = complaint[..<end] + (question.isEmpty ? "" : ".") + question + usage
    return text == complaint ? nil : String(text)
  }

  /// Returns an option without the value that follows its `=`.
  private static func name(of option: String) -> String { String(option.prefix { $0 != "=" }) }

  /// Returns the names of the options in a command's help.
  private static func options(
    of command: any ParsableCommand.Type,
    _ root: any ParsableCommand.Type
  ) -> [String] {
    // The help of a command with a default one lacks the default one's options.
    let commands = [command, command.configuration.defaultSubcommand].compactMap(\.self)
    return commands.flatMap { command in
      root.helpMessage(for: command, includeHidden: true).split(separator: "\n")
        .filter { $0.hasPrefix("  -") }
        .flatMap { line in
          line.split { " ,/".contains($0) }.prefix { $0.hasPrefix("-") || $0.hasPrefix("<") }
            .filter { $0.hasPrefix("-") }.map(String.init)
        }
    }
  }
}
