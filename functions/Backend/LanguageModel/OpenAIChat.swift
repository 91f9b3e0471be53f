import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A model on any server with OpenAI's chat completions and structured outputs.
///
/// Services use it through `MeteredChat`, which records each call in the ledger.
struct OpenAIChat: Sendable {
  let name: String
  let server: OpenAIServer
  let answerTokensMax: Int
  /// The limit of silence that ends a streamed answer.
  ///
  /// A model sends nothing while it thinks.
  let silence: SilenceLimit

  /// The maximum number of attempts for an answer.
  ///
  /// Answers vary, so a second attempt may follow the schema although the first did not.
  private static let answersMax = 2
  /// The timeout for a long answer; a shorter timeout of the function applies first.
  private static let timeout: Duration = .seconds(60)

  /// Creates a model below `baseURL`, such as `https://api.openai.com/v1`.
  ///
  /// `answerTokensMax` limits the cost of one answer, including its reasoning tokens.
  init(
    model: String,
    baseURL: String,
    key: String?,
    http: any HTTPTransport,
    retries: ServiceRetries = ServiceRetries(),
    clock: any Clock<Duration> = ContinuousClock(),
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
    silence = SilenceLimit(longest: .seconds(60), clock: clock)
  }

  /// Throws the error of a call while the circuit is open.
  func check() throws { try server.check() }

  /// Throws the error of a call while the circuit is open, without preparing for a call.
  func peek() throws { try server.peek() }

  /// The maximum number of tokens that an answer can use.
  ///
  /// Each token of the request is at least one byte of it.
  func usageMax(of messages: [ChatMessage], as schema: JSONSchema) throws -> TokenUsage {
    TokenUsage(
      promptTokens: try JSONEncoder().encode(request(messages, schema)).count,
      completionTokens: answerTokensMax
    )
  }

  private func request(_ messages: [ChatMessage], _ schema: JSONSchema) -> Request {
    Request(
      model: name,
      messages: messages,
      max_completion_tokens: answerTokensMax,
      response_format: Request.Format(schema)
    )
  }

  /// An answer with its usage.
  ///
  /// The answer is nil if it does not follow the schema.
  typealias Attempt<Output> = (output: Output?, usage: TokenUsage)

  /// Requests an answer, and once more if the first does not follow the schema.
  ///
  /// `count` makes each request, and gets its usage even if the request fails. Throws as
  /// `ChatModel.answer` does.
  func answer<Output: Decodable & Sendable>(
    _ messages: [ChatMessage],
    as schema: JSONSchema,
    _ type: Output.Type,
    count: (_ request: (inout TokenUsage) async throws -> Attempt<Output>) async throws
      -> Attempt<Output>
  ) async throws -> ChatAnswer<Output> {
    var usage = TokenUsage()
    for _ in 1...Self.answersMax {
      do {
        let attempt = try await count { used in
          let output = try await answer(messages, as: schema, type, usage: &used)
          return (output, used)
        }
        usage += attempt.usage
        if let output = attempt.output { return ChatAnswer(output: output, usage: usage) }
      } catch var error as ServiceError {
        error.usage += usage
        throw error
      }
    }
    var error = ServiceError(
      .refused,
      "\(name) returned a form other than \(schema.name) \(Self.answersMax) times"
    )
    error.usage = usage
    throw error
  }

  private func answer<Output: Decodable & Sendable>(
    _ messages: [ChatMessage],
    as schema: JSONSchema,
    _ type: Output.Type,
    usage: inout TokenUsage
  ) async throws -> Output? {
    let most = try usageMax(of: messages, as: schema)
    let text = try await server.post(
      ["chat", "completions"],
      request(messages, schema),
      timeout: Self.timeout
    ) { (reply: Reply) in
      let counted = TokenUsage(
        reply.usage,
        promptBytes: messages.reduce(0) { $0 + $1.content.utf8.count },
        completionBytes: reply.choices.first?.message.content?.utf8.count ?? 0,
        atMost: most
      )
      return try usage.add(counted) { try reply.text() }
    }
    // A decoding error could quote what people wrote, so it is not passed on.
    return try? JSONDecoder().decode(Output.self, from: Data(text.utf8))
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

  /// The fields that all servers support; other fields are ignored.
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

    /// Returns the text of a complete answer.
    ///
    /// The text of a refusal may be about people, so it is not passed on.
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
