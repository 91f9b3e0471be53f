/// A valid request for a chat completion.
struct ChatCall {
  let model: String
  let isStream: Bool
  let includesUsage: Bool
  /// The text of the last user message, matched by the script's rules.
  let lastUserText: String
  let endsWithTool: Bool
  let promptTokens: Int
  /// The callable functions by name, with the schema of each strict one.
  private let tools: [String: StrictSchema?]
  private let toolChoice: JSON
  private let form: StrictSchema?

  private static let roles: Set<String> = ["system", "developer", "user", "assistant", "tool"]

  /// Parses the request; throws `StubError` where the API would reject it.
  init(_ body: JSON) throws {
    model = try body.model()
    isStream = body["stream"]?.isTrue ?? false
    includesUsage = body["stream_options"]?["include_usage"]?.isTrue ?? false
    if body["stream_options"]?.properties != nil, !isStream {
      throw StubError(
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        param: "stream_options"
      )
    }
    if let number = body["n"], number != .null, number != 1 {
      throw StubError.unscripted("the stub answers with one choice; leave n out")
    }
    let messages = try Self.messages(body["messages"])
    try Self.checkToolResults(messages)
    let userMessage = messages.last { $0["role"] == "user" }
    lastUserText = userMessage.map(Self.text) ?? ""
    endsWithTool = messages.last?["role"] == "tool"
    // The API adds three tokens for each message and three for the start of the completion.
    promptTokens = messages.reduce(3) { $0 + 3 + TokenCount.of(Self.text($1)) }
    tools = try Self.tools(body["tools"])
    toolChoice = try Self.toolChoice(body["tool_choice"], tools)
    form = try Self.form(body["response_format"], messages)
  }

  /// Throws if no model could give this reply to the request.
  ///
  /// Replies that are `unchecked` or refuse always pass.
  func check(_ reply: ScriptedReply) throws {
    if reply.unchecked == true || reply.refusal != nil { return }
    let calls = reply.toolCalls ?? []
    if reply.text == nil, calls.isEmpty {
      throw StubError.unscripted("the scripted reply has neither content nor toolCalls")
    }
    if !calls.isEmpty, toolChoice == "none" {
      throw StubError.unscripted("the scripted reply calls a tool and tool_choice is none")
    }
    if calls.isEmpty, toolChoice == "required" || toolChoice["function"] != nil {
      throw StubError.unscripted("the scripted reply calls no tool and tool_choice demands one")
    }
    for call in calls {
      guard let schema = tools[call.name] else {
        throw StubError.unscripted("the request offers no tool \(call.name)")
      }
      if let problem = schema?.mismatch(call.arguments) {
        throw StubError.unscripted("the arguments scripted for \(call.name): \(problem)")
      }
    }
    if calls.isEmpty, reply.finishReason == nil, let form {
      let value = reply.json ?? reply.content.flatMap(JSON.init(parsing:))
      guard let value else { throw StubError.unscripted("the scripted content is not JSON") }
      if let problem = form.mismatch(value) {
        throw StubError.unscripted("the scripted content does not fit the schema: \(problem)")
      }
    }
  }

  // MARK: Requests that the API rejects

  private static func messages(_ messages: JSON?) throws -> [JSON] {
    guard let messages = messages?.items, !messages.isEmpty else {
      throw StubError(
        "Invalid 'messages': expected an array with at least 1 message.",
        param: "messages"
      )
    }
    for (index, message) in messages.enumerated() {
      let place = "messages[\(index)]"
      guard let role = message["role"]?.text, roles.contains(role) else {
        throw StubError(
          "Invalid value for '\(place).role'. Supported values are: "
            + roles.sorted().map { "'\($0)'" }.joined(separator: ", ") + ".",
          param: "\(place).role",
          code: "invalid_value"
        )
      }
      let isCall = role == "assistant" && message["tool_calls"]?.items?.isEmpty == false
      let hasContent = message["content"]?.text != nil || message["content"]?.items != nil
      guard hasContent || isCall else {
        throw StubError(
          "Invalid value for 'content': expected a string, got null.",
          param: "\(place).content"
        )
      }
    }
    return messages
  }

  /// Checks that each tool call is directly followed by its result, and each result has a call.
  private static func checkToolResults(_ messages: [JSON]) throws {
    var open: Set<String> = []
    var called: Set<String> = []
    func checkNothingOpen() throws {
      guard open.isEmpty else {
        throw StubError(
          "An assistant message with 'tool_calls' must be followed by tool messages responding to "
            + "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + open.sorted().joined(separator: ", "),
          param: "messages"
        )
      }
    }
    for (index, message) in messages.enumerated() {
      if message["role"] == "tool" {
        let id = message["tool_call_id"]?.text ?? ""
        guard !called.isEmpty else {
          throw StubError(
            "Invalid parameter: messages with role 'tool' must be a response to a preceding "
              + "message with 'tool_calls'.",
            param: "messages[\(index)].role"
          )
        }
        guard called.contains(id) else {
          throw StubError(
            "Invalid parameter: 'tool_call_id' of '\(id)' not found in 'tool_calls' of previous "
              + "message.",
            param: "messages[\(index)].tool_call_id"
          )
        }
        open.remove(id)
      } else {
        try checkNothingOpen()
        called = Set((message["tool_calls"]?.items ?? []).compactMap { $0["id"]?.text })
        open = called
      }
    }
    try checkNothingOpen()
  }

  private static func tools(_ tools: JSON?) throws -> [String: StrictSchema?] {
    var known: [String: StrictSchema?] = [:]
    for (index, tool) in (tools?.items ?? []).enumerated() {
      guard tool["type"] == "function", let name = tool["function"]?["name"]?.text else {
        throw StubError("Missing required parameter: 'tools[\(index)].function'.", param: "tools")
      }
      try checkName(name, param: "tools[\(index)].function.name")
      guard tool["function"]?["strict"]?.isTrue == true else {
        known[name] = .some(nil)
        continue
      }
      let schema = StrictSchema(tool["function"]?["parameters"] ?? .null)
      if let problem = schema.problem {
        throw StubError(
          "Invalid schema for function '\(name)': \(problem).",
          param: "tools[\(index)].function.parameters",
          code: "invalid_function_parameters"
        )
      }
      known[name] = schema
    }
    return known
  }

  private static func toolChoice(_ choice: JSON?, _ tools: [String: StrictSchema?]) throws -> JSON {
    guard let choice, choice != .null else { return "auto" }
    guard !tools.isEmpty else {
      throw StubError(
        "'tool_choice' is only allowed when 'tools' are specified.",
        param: "tool_choice"
      )
    }
    if let name = choice["function"]?["name"]?.text {
      guard tools[name] != nil else {
        throw StubError(
          "Tool choice '\(name)' not found in 'tools' parameter.",
          param: "tool_choice"
        )
      }
    } else if !["none", "auto", "required"].contains(choice) {
      throw StubError("Invalid value for 'tool_choice'.", param: "tool_choice")
    }
    return choice
  }

  private static func form(_ format: JSON?, _ messages: [JSON]) throws -> StrictSchema? {
    guard let format, format != .null else { return nil }
    switch format["type"] {
    case "text": return nil
    case "json_object":
      guard messages.contains(where: { text($0).lowercased().contains("json") }) else {
        throw StubError(
          "'messages' must contain the word 'json' in some form, to use 'response_format' of type "
            + "'json_object'.",
          param: "messages"
        )
      }
      return StrictSchema([:])
    case "json_schema":
      guard let name = format["json_schema"]?["name"]?.text else {
        throw StubError(
          "Missing required parameter: 'response_format.json_schema.name'.",
          param: "response_format.json_schema.name",
          code: "missing_required_parameter"
        )
      }
      try checkName(name, param: "response_format.json_schema.name")
      let schema = StrictSchema(format["json_schema"]?["schema"] ?? [:])
      if format["json_schema"]?["strict"]?.isTrue == true, let problem = schema.problem {
        throw StubError(
          "Invalid schema for response_format '\(name)': \(problem).",
          param: "response_format"
        )
      }
      return schema
    default:
      throw StubError("Invalid value for 'response_format.type'.", param: "response_format.type")
    }
  }

  private static func checkName(_ name: String, param: String) throws {
    let isName = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    guard isName, (1...64).contains(name.utf8.count) else {
      throw StubError(
        "Invalid '\(param)': string does not match pattern '^[a-zA-Z0-9_-]{1,64}$'.",
        param: param,
        code: "invalid_value"
      )
    }
  }

  /// The text of a message, with all its text parts joined.
  private static func text(_ message: JSON) -> String {
    message["content"]?.text
      ?? (message["content"]?.items ?? []).compactMap { $0["text"]?.text }.joined(separator: "\n")
  }
}
