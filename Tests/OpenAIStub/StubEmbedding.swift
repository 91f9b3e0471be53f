import Foundation

/// The way the stub computes vectors.
///
/// It is never a real model, and the `model` of each response says so.
package struct StubEmbedding: Sendable, Hashable, Codable {
  /// The mode; `hash` by default.
  package var mode: Mode?
  /// The seed; a different seed gives different vectors for the same texts.
  package var seed: UInt64?
  /// The vector length; by default the length of OpenAI's model of the same name.
  package var dimension: Int?

  /// The ways to compute vectors.
  package enum Mode: String, Sendable, Hashable, Codable {
    /// Equal texts have equal vectors, different texts different ones; nothing else is guaranteed.
    case hash
    /// Texts that share words have similar vectors.
    case words
  }

  /// Creates a configuration; nil selects each default.
  package init(mode: Mode? = nil, seed: UInt64? = nil, dimension: Int? = nil) {
    self.mode = mode
    self.seed = seed
    self.dimension = dimension
  }

  /// The model name that responses report.
  func name(of model: String) -> String { "stub-\((mode ?? .hash).rawValue):\(model)" }

  /// The vector length of a model before any shortening.
  func dimension(of model: String) -> Int {
    dimension ?? (model == "text-embedding-3-large" ? 3072 : 1536)
  }

  /// Returns the unit-length vector of a text.
  package func vector(of text: String, dimension: Int) -> [Float] {
    var vector = [Float](repeating: 0, count: dimension)
    switch mode ?? .hash {
    case .hash:
      var state = Self.hash(text, seed: seed ?? 0)
      for index in vector.indices {
        state &+= 0x9E37_79B9_7F4A_7C15
        vector[index] = Float(Self.mixed(state) >> 40) / Float(1 << 23) - 1
      }
    case .words:
      for word in text.lowercased().split(whereSeparator: { !$0.isLetter && !$0.isNumber }) {
        let hash = Self.hash(String(word), seed: seed ?? 0)
        vector[Int(hash % UInt64(dimension))] += hash >> 63 == 0 ? 1 : -1
      }
    }
    let length = vector.reduce(0) { $0 + $1 * $1 }.squareRoot()
    guard length > 0 else {
      // The text has no words, or its words cancel each other out: any fixed direction will do.
      vector[0] = 1
      return vector
    }
    return vector.map { $0 / length }
  }

  /// FNV-1a, mixed so that every bit matters; the result is the same on every platform.
  private static func hash(_ text: String, seed: UInt64) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ mixed(seed)
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    return mixed(hash)
  }

  /// The finalizer of SplitMix64.
  private static func mixed(_ number: UInt64) -> UInt64 {
    var mixed = number
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// A valid request for embeddings.
struct EmbeddingsCall {
  private let model: String
  /// The texts and their token counts.
  private let inputs: [(text: String, tokens: Int)]
  private let dimension: Int
  private let isBase64: Bool
  private let embedding: StubEmbedding

  private static let inputsMax = 2048
  private static let inputTokensMax = 8192
  private static let tokensMax = 300_000

  /// Parses the request; throws `StubError` where the API would reject it.
  init(_ body: JSON, embedding: StubEmbedding) throws {
    model = try body.model()
    self.embedding = embedding
    inputs = try Self.inputs(body["input"])
    guard inputs.count <= Self.inputsMax else {
      throw StubError(
        "Invalid 'input': array too long. Expected an array with maximum length "
          + "\(Self.inputsMax), but got an array with length \(inputs.count) instead.",
        param: "input",
        code: "array_above_max_length"
      )
    }
    if let long = inputs.first(where: { $0.tokens > Self.inputTokensMax }) {
      throw StubError(
        "This model's maximum context length is \(Self.inputTokensMax) tokens, however you "
          + "requested \(long.tokens) tokens. Please reduce your prompt.",
        param: "input",
        code: "context_length_exceeded"
      )
    }
    let tokens = inputs.reduce(0) { $0 + $1.tokens }
    guard tokens <= Self.tokensMax else {
      throw StubError(
        "Requested \(tokens) tokens, max \(Self.tokensMax) tokens per request",
        param: "input",
        code: "max_tokens_per_request"
      )
    }
    let format = body["encoding_format"] ?? "float"
    guard format == "float" || format == "base64" else {
      throw StubError(
        "Invalid 'encoding_format': expected one of 'float' or 'base64'.",
        param: "encoding_format"
      )
    }
    isBase64 = format == "base64"
    let whole = embedding.dimension(of: model)
    guard let asked = body["dimensions"], asked != .null else {
      dimension = whole
      return
    }
    guard model.hasPrefix("text-embedding-3") else {
      throw StubError("This model does not support specifying dimensions.", param: "dimensions")
    }
    guard let number = asked.number.flatMap(Int.init(exactly:)), (1...whole).contains(number) else {
      throw StubError(
        "Invalid value for 'dimensions' = \(asked.serialized). Must be at least 1 and at most "
          + "\(whole).",
        param: "dimensions"
      )
    }
    dimension = number
  }

  /// Returns the response, correct except for the given alteration.
  func answer(_ alteration: StubFault.Alteration?) -> StubResponse {
    let sent = alteration == .vectorMissing ? inputs.dropLast() : inputs[...]
    let data = sent.enumerated().map { index, input -> JSON in
      var vector = embedding.vector(of: input.text, dimension: dimension)
      switch alteration {
      case .vectorsShort: vector.removeLast()
      case .vectorsNotANumber: vector[vector.count - 1] = .nan
      case .vectorsUnscaled: vector = vector.map { $0 * 3 }
      default: break
      }
      return ["object": "embedding", "index": JSON(index), "embedding": encoded(vector)]
    }
    let tokens = JSON(inputs.reduce(0) { $0 + $1.tokens })
    var body: [String: JSON] = [
      "object": "list", "model": .string(embedding.name(of: model)), "data": .array(data),
      "usage": ["prompt_tokens": tokens, "total_tokens": tokens],
    ]
    if alteration == .withoutUsage { body["usage"] = nil }
    return StubResponse(.object(body))
  }

  private func encoded(_ vector: [Float]) -> JSON {
    // JSON cannot represent NaN.
    guard isBase64 else { return .array(vector.map { $0.isNaN ? .null : .number(Double($0)) }) }
    let bytes = vector.flatMap { number in
      withUnsafeBytes(of: number.bitPattern.littleEndian) { Array($0) }
    }
    return .string(Data(bytes).base64EncodedString())
  }

  /// Parses the input: one text, several texts, one token list, or several token lists.
  private static func inputs(_ input: JSON?) throws -> [(text: String, tokens: Int)] {
    let refusal = StubError(
      "'$.input' is invalid. Please check the API reference.",
      param: "input"
    )
    switch input {
    case .string(let text): return [try counted(text)]
    case .array(let items):
      guard let first = items.first else {
        throw StubError("Invalid 'input': input cannot be an empty array.", param: "input")
      }
      switch first {
      case .number: return [try counted(items)]
      default:
        return try items.map { item in
          switch item {
          case .string(let text): try counted(text)
          case .array(let tokens): try counted(tokens)
          default: throw refusal
          }
        }
      }
    default: throw refusal
    }
  }

  private static func counted(_ text: String) throws -> (text: String, tokens: Int) {
    guard !text.isEmpty else {
      throw StubError("Invalid 'input': input cannot be an empty string.", param: "input")
    }
    return (text, TokenCount.of(text))
  }

  private static func counted(_ tokens: [JSON]) throws -> (text: String, tokens: Int) {
    guard !tokens.isEmpty, tokens.allSatisfy({ $0.number.flatMap(Int.init(exactly:)) != nil })
    else { throw StubError("Invalid 'input': tokens must be integers.", param: "input") }
    return (tokens.map(\.serialized).joined(separator: " "), tokens.count)
  }
}

/// Approximate token counts, never above the number of bytes.
enum TokenCount {
  /// Estimates the tokens of a text.
  ///
  /// Four bytes of letters or digits are a token, and each other character except blanks is a
  /// token.
  static func of(_ text: String) -> Int {
    var tokens = 0
    var run = 0
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), 0x80...:
        run += 1
      default:
        tokens += (run + 3) / 4 + (byte <= UInt8(ascii: " ") ? 0 : 1)
        run = 0
      }
    }
    return max(1, tokens + (run + 3) / 4)
  }
}
