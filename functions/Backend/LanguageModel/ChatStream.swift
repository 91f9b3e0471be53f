#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A parser that assembles a model's turn from the events of its stream.
///
/// Calls of tools arrive in fragments with a common index. Only the first fragment has the call's
/// id and name.
struct ChatStream: Sendable {
  private let promptBytes: Int
  private let usageMax: TokenUsage
  private var text = ""
  private var isRefused = false
  private var calls: [Int: ToolCall] = [:]
  /// The bytes that the model has written, including a refusal.
  private var written = 0
  private var finishReason: String?
  private var usage: TokenUsage.Stated?
  private var isDone = false

  /// The maximum number of calls in a turn, whatever indexes a server sends.
  private static let callsMax = 128
  /// The maximum size of a turn in bytes, with all its texts and calls.
  private static let bytesMax = 1 << 16

  /// Creates a parser for the response to a prompt with the given number of bytes.
  ///
  /// `usageMax` limits the usage, even if the server reports more.
  init(promptBytes: Int, usageMax: TokenUsage) {
    self.promptBytes = promptBytes
    self.usageMax = usageMax
  }

  /// Reads one line of the stream and returns the text that it adds, if any.
  ///
  /// Throws `unavailable` for an event that is not part of a stream of chat completions or that
  /// reports an error, and `refused` for a turn that is too long.
  mutating func read(_ line: String) throws -> String? {
    // Other lines are event names, or comments that keep a connection alive.
    guard line.hasPrefix("data:") else { return nil }
    let data = line.dropFirst(5).drop { $0 == " " }
    if data == "[DONE]" {
      isDone = true
      return nil
    }
    let chunk: Chunk
    do {
      chunk = try JSONDecoder().decode(Chunk.self, from: Data(data.utf8))
    } catch {
      throw ServiceError(.unavailable, "the chat provider sent an event that cannot be read")
    }
    if chunk.error != nil {
      throw ServiceError(.unavailable, "the chat provider broke off its answer with an error")
    }
    usage = chunk.usage ?? usage
    guard let choice = chunk.choices?.first else { return nil }
    finishReason = choice.finish_reason ?? finishReason
    if let refusal = choice.delta?.refusal, !refusal.isEmpty {
      isRefused = true
      try count(refusal)
    }
    for (position, fragment) in (choice.delta?.tool_calls ?? []).enumerated() {
      try add(fragment, at: fragment.index ?? position)
    }
    guard let added = choice.delta?.content, !added.isEmpty else { return nil }
    try count(added)
    text += added
    return added
  }

  private mutating func add(_ fragment: Chunk.Fragment, at index: Int) throws {
    if calls[index] == nil {
      guard calls.count < Self.callsMax else { throw Self.tooLong }
      calls[index] = ToolCall(id: "", name: "", arguments: "")
    }
    try count(fragment.id, fragment.function?.name, fragment.function?.arguments)
    // Copying the stored call would make each addition take time linear in its length.
    func complete(_ call: inout ToolCall) {
      if call.id.isEmpty { call.id = fragment.id ?? "" }
      if call.name.isEmpty { call.name = fragment.function?.name ?? "" }
      call.arguments += fragment.function?.arguments ?? ""
    }
    complete(&calls[index, default: ToolCall(id: "", name: "", arguments: "")])
  }

  private mutating func count(_ texts: String?...) throws {
    for text in texts { written += text?.utf8.count ?? 0 }
    guard written <= Self.bytesMax else { throw Self.tooLong }
  }

  private static let tooLong = ServiceError(.refused, "the model's answer has no end")

  /// The usage so far, as the server reported it or estimated from the data received.
  ///
  /// It is zero before any data arrives.
  var used: TokenUsage {
    guard usage != nil || written > 0 || finishReason != nil else { return TokenUsage() }
    return TokenUsage(
      usage,
      promptBytes: promptBytes,
      completionBytes: written,
      atMost: usageMax
    )
  }

  /// True if any text has arrived.
  var hasText: Bool { !text.isEmpty }

  /// Returns the complete turn at the end of the stream.
  ///
  /// Throws `unavailable` if the stream broke off, and `refused` if the model refused or the
  /// provider's filter blocked the answer.
  func reply() throws -> ChatReply {
    guard isDone || finishReason != nil else {
      throw ServiceError(.unavailable, "the chat provider broke off its answer")
    }
    if isRefused { throw ServiceError(.refused, "the model refused to answer") }
    if finishReason == "content_filter" {
      throw ServiceError(.refused, "the chat provider's filter held the answer back")
    }
    let calls = calls.sorted { $0.key < $1.key }.map(\.value)
    return ChatReply(
      text: text,
      calls: calls,
      isCutOff: finishReason == "length",
      usage: used
    )
  }

  /// The fields that all servers support; other fields are ignored.
  private struct Chunk: Decodable {
    struct Choice: Decodable {
      var delta: Delta?
      var finish_reason: String?
    }
    struct Delta: Decodable {
      var content: String?
      var refusal: String?
      var tool_calls: [Fragment]?
    }
    struct Fragment: Decodable {
      struct Function: Decodable {
        var name: String?
        var arguments: String?
      }
      var index: Int?
      var id: String?
      var function: Function?
    }
    struct Failure: Decodable {}

    var choices: [Choice]?
    var usage: TokenUsage.Stated?
    var error: Failure?
  }
}
