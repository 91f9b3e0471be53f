import ArgumentParser
import EmulatorSuite
import Foundation
import JSONText

/// `hearth fire`: sends one trigger event to one function, without a write.
struct Fire: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Send one event to one triggered function, without writing anything.",
    usage: "hearth fire <name> [--document <document>] [--path <path>] [--data <json>] [<options>]",
    discussion: """
      Data is JSON, with {"$timestamp": "2026-12-01T18:00:00Z"}, {"$reference": "users/u1"} and \
      so on for what JSON lacks, as `hearth import --help` has it; or Firestore's own form if its \
      only top key is "fields". With --data alone the document counts as created, with --before \
      too as updated, with --before alone as deleted. A value of the Realtime Database has --path in \
      place of --document, and plain JSON. Functions that wait for other events than \
      documents' get a CloudEvent as JSON; of its members only "data" matters to most, and what is \
      missing is made up.

        hearth fire welcome --document users/tina --data @user.json
        hearth fire onUser --document users/u1 --data '{"name": "Ann"}'
        hearth fire onUser --document users/u1 --before '{"name": "Ann"}'
        hearth fire mirror --path presence/tina --data '{"online": true}'
        hearth fire onSignUp --event signup.json
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Argument(help: "The function's name.")
  var name: String

  @Option(help: "Path of the document below the database, such as chats/c1.")
  var document: String?

  @Option(help: "Path of the value in the Realtime Database, such as presence/tina.")
  var path: String?

  @Option(help: ArgumentHelp("A CloudEvent as JSON: its file, or -.", valueName: "file"))
  var event: String?

  @Option(
    name: .customLong("data"),
    // JSON may begin with a minus sign.
    parsing: .unconditional,
    help: ArgumentHelp("The document or value after, as JSON, @FILE or -.", valueName: "json")
  )
  var after: String?

  @Option(help: ArgumentHelp("The document or value before, as JSON or @FILE.", valueName: "json"))
  var before: String?

  func validate() throws {
    let places = [document, path].compactMap(\.self).count
    guard event == nil ? places < 2 : places == 0 && after == nil && before == nil else {
      throw ValidationError("Give --event, or --document or --path with --data or --before.")
    }
  }

  /// The complaint of missing options; nil if none are missing.
  ///
  /// It is not for `validate`, because a function of another kind takes none of the options.
  private var missingOptions: String? {
    guard event == nil else { return nil }
    guard document != nil || path != nil else {
      return
        "Give --document PATH, --path REF for a value of the Realtime Database, or --event FILE "
        + "for other events."
    }
    return after == nil && before == nil ? "Give --data, --before or both." : nil
  }

  /// Throws unless the function is deployed and takes events.
  private func checkFunction(_ client: ControlClient) async throws {
    let functions = try await FunctionNames(client)
    guard let function = functions[name] else { throw functions.unknown(name) }
    guard function.kind == .trigger else {
      throw CommandError("\(name) takes no events: \(Call.invocationHint(function))")
    }
  }

  func run() async throws {
    if let missingOptions {
      // Without a suite, the options are all that is known to be wrong.
      if let client = try? await suite.connect() { try await checkFunction(client) }
      throw CommandError("\(missingOptions) See `hearth fire --help`.", .usage)
    }
    var members: [String] = []
    if let document { members.append("\"document\":\(jsonQuoted(document))") }
    if let path { members.append("\"path\":\(jsonQuoted(path))") }
    let file = event.map { $0 == "-" ? $0 : "@\($0)" }
    for (key, option, text) in [
      ("data", "--data", after), ("before", "--before", before), ("event", "--event", file),
    ] {
      guard let text else { continue }
      // The text is passed on as it is, because 2 and 2.0 are different values.
      let json = try JSONInput.read(text, option: option)
      members.append("\"\(key)\":\(String(decoding: json, as: UTF8.self))")
    }
    let client = try await suite.connect()
    try await checkFunction(client)
    let reply = try await client.data(
      "POST",
      "/hearth/v1/functions/\(name.percentEncoded)/fire",
      body: Array("{\(members.joined(separator: ","))}".utf8)
    )
    let outcome = try FireOutcome(decodingJSON: reply)
    guard outcome.succeeded else {
      let error = (outcome.error ?? "no reason given")
        .trimmingCharacters(in: .whitespacesAndNewlines)
      let hint = event == nil ? Self.hint(on: error) : ""
      throw CommandError("\(name) failed: \(error.indented(by: 2))\(hint)")
    }
    Terminal.print("\(name) succeeded in \(outcome.milliseconds) ms")
  }

  /// Returns a line on how a document's time is written, if its lack made the function fail.
  static func hint(on error: String) -> String {
    let isTime = ["a date", "a timestamp"].contains { error.contains("is a string, not \($0)") }
    return isTime ? "\nWrite a time as {\"$timestamp\": \"2026-12-01T18:00:00Z\"}." : ""
  }
}
