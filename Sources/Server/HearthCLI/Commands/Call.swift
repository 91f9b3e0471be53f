import ArgumentParser
import DocumentModel
import EmulatorSuite
import Foundation
import FunctionLogs
import HTTPMessages
import Identifiers
import Identity
import JSONText
import Manifests
import OutboundHTTP

/// `hearth call`: invokes a callable and prints its bare result.
struct Call: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Invoke a callable function and print its result.",
    usage: "hearth call <name> [--data <json>] [--as <user>] [<options>]",
    discussion: """
      The result goes to stdout as JSON; an error of the function goes to stderr with its \
      details, exit code 1. For INTERNAL, which hides the error from clients, the error and the \
      place that threw it follow from the log. Without --as and --admin the caller is not signed in.

        hearth call greeting --as alice --data '{"isLoud": true}'
        hearth call assignPlan --as tina --claims '{"role": "trainer"}' --data @plan.json
        hearth call backfillEmbeddings --admin --data @job.json
        echo '{"isLoud": true}' | hearth call greeting --as alice --data -
        hearth call chat --stream --data '{"text": "Hello"}'
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Argument(help: "The function's name.")
  var name: String

  @Option(
    name: .customLong("data"),
    // JSON may begin with a minus sign.
    parsing: .unconditional,
    help: ArgumentHelp("The data, as JSON, @FILE or - for stdin.", valueName: "json")
  )
  var payload = "null"

  @Option(
    name: .customLong("as"),
    help: ArgumentHelp(
      "Act as this user, named by the uid or the e-mail address.",
      discussion: """
        A user of the Auth emulator acts with the token of a sign-in; any other uid with a test \
        token. The user stays unchanged.
        """,
      valueName: "user"
    )
  )
  var user: String?

  @Option(
    help: ArgumentHelp("Custom claims of the user of --as, as a JSON object.", valueName: "json")
  )
  var claims: String?

  @Flag(help: "Act as the administrator (Bearer owner).")
  var admin = false

  @Flag(
    help: ArgumentHelp(
      "Print each chunk as it comes, before the result.",
      discussion: """
        On a terminal the `text` of chunks that are objects with one runs on as it comes. All other \
        chunks, and all chunks where a program reads, are JSON, one a line.
        """
    )
  )
  var stream = false

  func validate() throws {
    guard !(admin && user != nil) else { throw ValidationError("Give --as or --admin, not both.") }
    guard user != "" else {
      throw ValidationError("--as is empty; give a user id such as tina.")
    }
    guard claims == nil || user != nil else {
      throw ValidationError("--claims are those of a user; give --as, too.")
    }
  }

  func run() async throws {
    let data = try JSONInput.read(payload, option: "--data")
    if let claims { try JSONInput.checkObject(claims, option: "--claims") }
    let client = try await suite.connect()
    let functions = try await client.get("/hearth/v1/functions", as: [FunctionDescription].self)
    guard let function = functions.first(where: { $0.name == name }) else {
      throw FunctionNames(functions).unknown(name, kind: .callable)
    }
    guard function.kind == .callable, let url = function.url else {
      throw CommandError("\(name) is not a callable: \(Self.invocationHint(function))")
    }
    let trace = Trace()
    var headers: OutboundHeaders = [
      "content-type": "application/json", "traceparent": trace.parent,
    ]
    if let user { headers["authorization"] = "Bearer " + (try await token(for: user, client)) }
    if admin { headers["authorization"] = "Bearer owner" }
    var request = OutboundRequest(method: "POST", url: url, headers: headers)
    request.body = Array(#"{"data":"#.utf8) + data + Array("}".utf8)
    request.timeout = nil
    do {
      if stream {
        try await reportStream(request)
      } else {
        try report(try await OutboundClient().send(request))
      }
    } catch let failure as CallFailure {
      guard failure.isHidden, let reason = await reason(of: trace, client) else {
        throw CommandError(failure.text + (try Self.hint(on: failure, data)))
      }
      throw CommandError(failure.text + "\n" + reason)
    }
  }

  /// The trace that the call begins, which finds its log lines.
  private struct Trace {
    let id = (0..<2).map { _ in UInt64.random(in: 1 ... .max).hexDigits }.joined()

    /// The W3C header `traceparent`.
    var parent: String { "00-\(id)-\(UInt64.random(in: 1 ... .max).hexDigits)-01" }
  }

  /// A function's error for its caller.
  private struct CallFailure: Error {
    /// The name of the error's status, such as `NOT_FOUND`.
    var status: String
    /// True if the caller is not told what went wrong, as for every error but a `CallableError`.
    var isHidden: Bool
    var text: String
  }

  /// Returns the error that the log has for a call, and the place that threw it.
  ///
  /// The line arrives on its own way, so it may come a moment after the response.
  private func reason(of trace: Trace, _ client: ControlClient) async -> String? {
    for _ in 0..<Self.readsMax {
      // The call's own failure is reported in any case.
      let lines = try? await client.data(
        "GET",
        "/hearth/v1/logs?trace=\(trace.id)&level=error&function=\(name.percentEncoded)"
      )
      for line in (lines ?? []).split(separator: UInt8(ascii: "\n")) {
        // A line of another form tells no reason.
        guard let entry = try? FunctionLogEntry(decodingJSON: line),
          let error = entry.metadata["error"]
        else { continue }
        let place = entry.metadata["place"].map { "\nthrown at \($0)" } ?? ""
        return "The handler threw: \(error)\(place)".indented(by: 2)
      }
      // A cancelled sleep only ends the wait earlier.
      try? await Task.sleep(for: Self.readInterval)
    }
    return nil
  }

  private static let readsMax = 20
  private static let readInterval = Duration.milliseconds(50)

  /// Prints the chunks of an event stream as they arrive, then the result.
  private func reportStream(_ request: OutboundRequest) async throws {
    var request = request
    request.headers["accept"] = ServerSentEvents.mediaType
    request.responseBytesMax = .max
    let response = try await OutboundClient().stream(request)
    let prefix = "data: "
    var words = StreamedWords()
    for try await line in response.body.lines(lineBytesMax: Self.eventBytesMax)
    where line.hasPrefix(prefix) {
      let event = OutboundResponse(status: response.status, body: Array(line.utf8.dropFirst(6)))
      // `report` explains an event that is not JSON.
      let fields = try? JSONSerialization.jsonObject(with: Data(event.body)) as? [String: Any]
      guard let chunk = fields?["message"] else {
        Terminal.print(unended: words.end())
        return try report(event)
      }
      let json = try Self.json(chunk, options: [])
      if Terminal.isOutputShown {
        Terminal.print(unended: words.text(of: chunk, json: json))
      } else {
        Terminal.print(json: json)
      }
    }
    Terminal.print(unended: words.end())
    throw CommandError("HTTP \(response.status): the stream ended without a result.")
  }

  /// The maximum size of a chunk or result, equal to the gateway's limit.
  private static let eventBytesMax = FunctionLimits.bodyBytesMax

  private func token(for user: String, _ client: ControlClient) async throws -> String {
    let auth = try await AuthClient(client)
    if let account = try await user.contains("@") ? auth.existingUser(user) : auth.user(user) {
      return try await auth.token(of: account, claims: claims)
    }
    let description = try await client.get("/hearth/v1/suite", as: SuiteDescription.self)
    guard let claims else {
      return try UnsignedTokenIssuer.issue(uid: user, project: description.project)
    }
    let fields = try MapValue(decodingJSON: claims.utf8)
    return try UnsignedTokenIssuer.issue(uid: user, project: description.project, claims: fields)
  }

  private func report(_ response: OutboundResponse) throws {
    // A body that is not JSON is shown unchanged.
    let reply = try? JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
    if response.isSuccess, let result = reply?["result"] {
      Terminal.print(json: try Self.pretty(result))
      return
    }
    guard let error = reply?["error"] as? [String: Any], let status = error["status"] as? String
    else { throw CommandError("HTTP \(response.status): \(response.text.indented(by: 2))") }
    let message = error["message"] as? String ?? ""
    var text = "\(status): \(message)".indented(by: 2)
    if let details = error["details"] { text += "\ndetails: \(try Self.pretty(details))" }
    throw CallFailure(
      status: status,
      isHidden: status == "INTERNAL" && message == "INTERNAL",
      text: text
    )
  }

  /// Returns a line on the envelope of a request, if it was part of the data of a refused call.
  private static func hint(on failure: CallFailure, _ data: [UInt8]) throws -> String {
    guard failure.status == "INVALID_ARGUMENT",
      try jsonMembersInOrder(of: data)?.map(\.name) == ["data"]
    else { return "" }
    return "\n`hearth call` adds {\"data\": …} itself; give --data only what stands in it."
  }

  private static func pretty(_ json: Any) throws -> String {
    try Self.json(json, options: .prettyPrinted)
  }

  /// Returns a hint on how to invoke a function that is not a callable.
  static func invocationHint(_ function: FunctionDescription) -> String {
    let name = function.name
    return switch function.kind {
    case .callable: "`hearth call \(name)` calls it."
    case .http: "`curl \(function.url ?? name)` calls it."
    case .schedule: "`hearth functions run \(name)` runs it."
    case .task: "`hearth enqueue \(name)` gives it a task."
    case .blocking: "it runs when a user signs up or signs in."
    case .trigger: "`hearth fire \(name)` sends it an event."
    }
  }

  private static func json(
    _ json: Any,
    options: JSONSerialization.WritingOptions
  ) throws -> String {
    let options = options.union([.sortedKeys, .fragmentsAllowed, .withoutEscapingSlashes])
    return String(
      decoding: try JSONSerialization.data(withJSONObject: json, options: options),
      as: UTF8.self
    )
  }
}
