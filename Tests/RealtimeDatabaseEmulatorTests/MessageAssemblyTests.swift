@testable import RealtimeDatabaseEmulator
import TestSupport
import Testing

@Suite("Messages in pieces")
struct MessageAssemblyTests {
  private func add(_ frames: [String]) -> [MessageAssembly.Outcome] {
    var assembly = MessageAssembly()
    return frames.map { assembly.add(Array($0.utf8)) }
  }

  @Test("A frame is a message, unless a number announces pieces")
  func assembles() {
    #expect(add([#"{"a":1}"#]) == [.message(Array(#"{"a":1}"#.utf8))])
    #expect(
      add(["3", #"{"a""#, "12", "}", #"{"b":1}"#]) == [
        .incomplete, .incomplete, .incomplete, .message(Array(#"{"a"12}"#.utf8)),
        .message(Array(#"{"b":1}"#.utf8)),
      ]
    )
  }

  @Test("A zero keeps the connection alive, and nothing follows it")
  func keepAlive() {
    #expect(
      add(["0", "0", "1234567"]) == [.incomplete, .incomplete, .message(Array("1234567".utf8))]
    )
  }

  @Test("As many pieces as clients send are accepted, and no more")
  func countLimit() {
    #expect(add(["9999"]) == [.incomplete])
    #expect(add(["10000"]) == [.malformed])
    #expect(add(["999999"]) == [.malformed])
  }

  @Test("Of a message that is too long, only the beginning is kept until its last piece")
  func sizeLimit() {
    var assembly = MessageAssembly()
    let start = Array(#"{"t":"d","d":{"r":7,"a":"p""#.utf8)
    let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
    #expect(assembly.add(Array("20".utf8)) == .incomplete)
    #expect(assembly.add(start) == .incomplete)
    for _ in 0..<18 { #expect(assembly.add(piece) == .incomplete) }
    #expect(assembly.bytes.count < 1 << 20)
    guard case .tooLong(let beginning) = assembly.add(piece) else {
      Issue.record("the message is not refused")
      return
    }
    #expect(ClientMessage.requestNumber(in: beginning) == 7)
    #expect(assembly.add(Array("{}".utf8)) == .message(Array("{}".utf8)))
  }

  @Test("The server's pieces have the length that clients expect, and divide no character")
  func splits() {
    #expect(MessagePieces.split([UInt8](repeating: 65, count: 16_384)).count == 1)
    #expect(MessagePieces.split([UInt8](repeating: 65, count: 16_385)).map(\.count) == [16_384, 1])
    // One unit before characters of two units, so that the limit falls within one.
    let text = Array(("a" + String(repeating: "😀", count: 20_000)).utf8)
    let pieces = MessagePieces.split(text)
    #expect(pieces.map { Array(text[$0]) }.flatMap(\.self) == text)
    for piece in pieces {
      let part = String(validating: text[piece], as: UTF8.self)
      #expect(part.map { $0.utf16.count <= MessagePieces.lengthMax } == true)
    }
  }

  @Test("Any text is put together again from its pieces")
  func randomTexts() {
    var generator = SeededGenerator.forTest()
    let characters = ["a", "é", "€", "😀", "\"", "\u{FFFF}"]
    for _ in 0..<20 {
      let count = Int.random(in: 0..<60_000, using: &generator)
      let text = (0..<count).map { _ in characters[Int.random(in: 0..<6, using: &generator)] }
      let bytes = Array(("{" + text.joined() + "12345}").utf8)
      let pieces = MessagePieces.split(bytes)
      var assembly = MessageAssembly()
      var outcome =
        pieces.count > 1 ? assembly.add(Array(String(pieces.count).utf8)) : .incomplete
      for piece in pieces { outcome = assembly.add(bytes[piece]) }
      #expect(outcome == .message(bytes))
    }
  }
}
