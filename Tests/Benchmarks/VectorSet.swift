import CKernels
import Dispatch
import NIOCore

/// Synthetic embeddings: topics in few latent dimensions, projected into many, with noise.
///
/// Real embeddings similarly lie near a space of far fewer dimensions than they have. Each number
/// has five decimals and is stored as an integer, so that JSON and NumPy get exactly the same
/// values.
struct VectorSet: Sendable {
  let dimension: Int
  /// Rows of `dimension` numbers, in units of 0.00001.
  let numbers: [Int16]
  /// The query vectors, in the same format as `numbers`.
  let queryNumbers: [Int16]

  static let count = 100_000
  static let queries = 64
  static let scale: Float = 100_000
  /// The number of chats; each has the same share of the vectors.
  static let chats = 100
  private static let latentDimension = 96
  private static let topics = 300
  /// The length of the noise relative to the vector.
  private static let noise: Float = 0.5

  /// The chat of a row, and the chat that filters the query with this number.
  static func chat(_ number: Int) -> Int { number % chats }

  static func id(_ row: Int) -> String { "message-\(row)" }

  /// Returns the row of an ID that `id(_:)` created.
  static func row(_ id: String) -> Int? { Int(id.dropFirst("message-".count)) }

  /// Generates the same vectors each time.
  init(dimension: Int = 1536) {
    self.dimension = dimension
    var random = SplitMix64(seed: 1)
    let basis = (0..<dimension * Self.latentDimension).map { _ in random.normal() }
    let centres = (0..<Self.topics * Self.latentDimension).map { _ in random.normal() }
    numbers = Self.rows(Self.count, of: dimension, seed: 2, basis, centres)
    queryNumbers = Self.rows(Self.queries, of: dimension, seed: 1_000_003, basis, centres)
  }

  private static func rows(
    _ count: Int,
    of dimension: Int,
    seed: UInt64,
    _ basis: [Float],
    _ centres: [Float]
  ) -> [Int16] {
    [Int16](unsafeUninitializedCapacity: count * dimension) { buffer, initialized in
      // Each row is written by one task only.
      nonisolated(unsafe) let rows = buffer
      let parts = 64
      DispatchQueue.concurrentPerform(iterations: parts) { part in
        for row in stride(from: part, to: count, by: parts) {
          var random = SplitMix64(seed: seed &+ UInt64(row))
          let topic = Int(random.next() % UInt64(topics)) * latentDimension
          let latent = (0..<latentDimension).map { centres[topic + $0] + 0.6 * random.normal() }
          var values = [Float](repeating: 0, count: dimension)
          basis.withUnsafeBufferPointer { basis in
            guard let base = basis.baseAddress else { return }
            for place in values.indices {
              values[place] = hearth_dot(latent, base + place * latentDimension, latentDimension)
            }
          }
          let strength =
            noise * (hearth_dot(values, values, dimension) / Float(dimension)).squareRoot()
          for place in values.indices { values[place] += strength * random.normal() }
          let length = hearth_dot(values, values, dimension).squareRoot()
          for place in values.indices {
            rows[row * dimension + place] = Int16((values[place] / length * scale).rounded())
          }
        }
      }
      initialized = count * dimension
    }
  }

  func values(_ row: Int) -> [Float] { values(numbers, row) }
  func query(_ number: Int) -> [Float] { values(queryNumbers, number % Self.queries) }

  private func values(_ numbers: [Int16], _ row: Int) -> [Float] {
    numbers[row * dimension..<(row + 1) * dimension].map { Float($0) / Self.scale }
  }

  /// Encodes an upsert of some rows.
  func upsert(_ rows: Range<Int>) -> ByteBuffer {
    var body = ByteBuffer()
    body.reserveCapacity(rows.count * (dimension * 9 + 200))
    body.writeString(#"{"vectors":["#)
    for row in rows {
      body.writeString(
        """
        \(row == rows.lowerBound ? "" : ",")\
        {"id":"\(Self.id(row))","metadata":{"chatId":"chat-\(Self.chat(row))","number":\(row),\
        "text":"The knee is better today, I walked for half an hour."},"values":
        """
      )
      write(numbers, row, to: &body)
      body.writeString("}")
    }
    body.writeString("]}")
    return body
  }

  /// Encodes a query for the ten best matches.
  func query(_ number: Int, isFiltered: Bool) -> ByteBuffer {
    var body = ByteBuffer()
    body.writeString(#"{"topK":10,"includeMetadata":true,"#)
    if isFiltered {
      body.writeString(#""filter":{"chatId":{"$eq":"chat-\#(Self.chat(number % Self.queries))"}},"#)
    }
    body.writeString(#""vector":"#)
    write(queryNumbers, number % Self.queries, to: &body)
    body.writeString("}")
    return body
  }

  private func write(_ numbers: [Int16], _ row: Int, to body: inout ByteBuffer) {
    var text: [UInt8] = []
    text.reserveCapacity(dimension * 9 + 2)
    text.append(UInt8(ascii: "["))
    for number in numbers[row * dimension..<(row + 1) * dimension] {
      if text.count > 1 { text.append(UInt8(ascii: ",")) }
      if number < 0 { text.append(UInt8(ascii: "-")) }
      text.append(UInt8(ascii: "0"))
      text.append(UInt8(ascii: "."))
      let magnitude = Int(number.magnitude)
      for power in [10_000, 1000, 100, 10, 1] {
        text.append(UInt8(ascii: "0") + UInt8(magnitude / power % 10))
      }
    }
    text.append(UInt8(ascii: "]"))
    body.writeBytes(text)
  }
}

extension SplitMix64 {
  /// An approximately normal number: the sum of four uniform ones, with variance 1.
  fileprivate mutating func normal() -> Float {
    let bits = next()
    let sum =
      Int(bits & 0xFFFF) + Int(bits >> 16 & 0xFFFF) + Int(bits >> 32 & 0xFFFF) + Int(bits >> 48)
    return Float(sum - 131_070) / 37_837
  }
}
