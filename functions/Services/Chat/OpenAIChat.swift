public import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A model behind any server that speaks OpenAI's chat completions with structured outputs.
public struct OpenAIChat: ChatModel {
  /// The model's name.
  public let name: String
  private let server: OpenAIServer
  private let answerTokensMax: Int

  /// The most answers asked for: a model is partly chance and may get right what it got wrong.
  private static let answersMax = 2
  /// The time-out for a long answer; a function's own time-out comes first if it is shorter.
  private static let timeout: Duration = .seconds(60)

  /// A model below `baseURL`, such as `https://api.openai.com/v1`.
  ///
  /// `answerTokensMax` bounds what one answer costs, thinking included.
  public init(
    model: String,
    baseURL: String,
    key: String?,
    http: any HTTPTransport,
    retries: ServiceRetries = ServiceRetries(),
    answerTokensMax: Int = 4096
  ) {
    name = model
    server = OpenAIServer(
      baseURL: baseURL,
      key: key,
      call: ServiceCall(
        service: "the chat provider",
        keySetting: "OPENAI_API_KEY",
        modelSetting: "PSST_CHAT_MODEL",
        http: http,
        now: retries.now
      ),
      retries: retries,
      circuit: ServiceCircuit(now: retries.now)
    )
    self.answerTokensMax = answerTokensMax
  }

  /// One answer, requested again if the first does not have the form that the schema describes.
  public func answer<Output: Decodable & Sendable>(
    _ messages: [ChatMessage],
    as schema: JSONSchema,
    _ type: Output.Type
  ) async throws -> ChatAnswer<Output> {
    let request = Request(
      model: name,
      messages: messages,
      max_completion_tokens: answerTokensMax,
      response_format: Request.Format(schema)
    )
    var usage = TokenUsage()
    for _ in 1...Self.answersMax {
      let (text, used) = try await server.post(
        ["chat", "completions"],
        request,
        timeout: Self.timeout
      ) { (reply: Reply) in
        let text = try reply.text()
        let promptBytes = messages.reduce(0) { $0 + $1.content.utf8.count }
        let used = TokenUsage(
          reply.usage,
          promptBytes: promptBytes,
          completionBytes: text.utf8.count
        )
        return (text, used)
      }
      usage += used
      // The reason could quote what people wrote, so it is not passed on.
      if let output = try? JSONDecoder().decode(Output.self, from: Data(text.utf8)) {
        return ChatAnswer(output: output, usage: usage)
      }
    }
    throw ServiceError(
      .unavailable,
      "\(name) answered \(Self.answersMax) times in another form than \(schema.name)"
    )
  }

  private struct Request: Encodable {
    struct Format: Encodable {
      struct Schema: Encodable {
        var name: String
        var strict = true
        var schema: JSONType
      }
      var type = "json_schema"
      var json_schema: Schema

      init(_ schema: JSONSchema) {
        json_schema = Schema(name: schema.name, schema: .object(schema.properties))
      }
    }

    var model: String
    var messages: [ChatMessage]
    var max_completion_tokens: Int
    var response_format: Format
  }

  /// The members on which servers agree; all others are ignored.
  private struct Reply: Decodable {
    struct Choice: Decodable {
      var message: Message
      var finish_reason: String?
    }
    struct Message: Decodable {
      var content: String?
      var refusal: String?
    }
    var choices: [Choice]
    var usage: TokenUsage.Stated?

    /// The text of a complete answer; a refusal's words may be about people and are not passed on.
    func text() throws -> String {
      guard let choice = choices.first else {
        throw ServiceError(.unavailable, "the chat provider sent no answer")
      }
      if choice.message.refusal != nil {
        throw ServiceError(.refused, "the model refused to answer")
      }
      switch choice.finish_reason {
      case "length":
        throw ServiceError(.refused, "the answer was cut off at the most tokens it may have")
      case "content_filter":
        throw ServiceError(.refused, "the chat provider's filter held the answer back")
      default: break
      }
      guard let content = choice.message.content, !content.isEmpty else {
        throw ServiceError(.unavailable, "the chat provider sent an empty answer")
      }
      return content
    }
  }
}
