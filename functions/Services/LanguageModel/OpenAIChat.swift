import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A model behind any server that speaks OpenAI's chat completions with structured outputs.
///
/// Services get it as `MeteredChat`, whose calls go through the ledger.
struct OpenAIChat: Sendable {
  /// The model's name.
  let name: String
  let server: OpenAIServer
  let answerTokensMax: Int
  /// The silence that ends a streamed answer; a model that thinks says nothing meanwhile.
  let silence: SilenceLimit

  /// The most answers asked for: a model is partly chance and may get right what it got wrong.
  private static let answersMax = 2
  /// The time-out for a long answer; a function's own time-out comes first if it is shorter.
  private static let timeout: Duration = .seconds(60)

  /// A model below `baseURL`, such as `https://api.openai.com/v1`.
  ///
  /// `answerTokensMax` bounds what one answer costs, thinking included.
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

  /// Throws as a call would while the circuit is open.
  func check() throws { try server.check() }

  /// Throws as a call would while the circuit is open, and prepares for no call.
  func peek() throws { try server.peek() }

  /// The most tokens that an answer can use: each token of the request is at least one byte of it.
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

  /// An answer with what it cost; nil for one without the form that the schema describes.
  typealias Attempt<Output> = (output: Output?, usage: TokenUsage)

  /// One answer, requested again if the first does not have the form that the schema describes.
  ///
  /// `count` makes each request, and is told what it cost, also where it fails. Throws as
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
      "\(name) answered \(Self.answersMax) times in another form than \(schema.name)"
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
    // The reason could quote what people wrote, so it is not passed on.
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
