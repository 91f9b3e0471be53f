import Foundation
import TestSupport
import Testing

@testable import WebChannel

@Suite("The numbers of a WebChannel")
struct WebChannelStateTests {
  @Test("Over any network the handler gets each message once and in order", arguments: 0..<20)
  func messages(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let all = (0..<60).map { "m\($0)" }
    var state = WebChannelState()
    var got: [String] = []
    // The client sends up to four messages after the last acknowledged one, in any order,
    // repeatedly.
    while got.count < all.count {
      let offset = max(0, got.count - Int.random(in: 0...3, using: &random))
      let start = min(all.count - 1, offset + Int.random(in: 0...4, using: &random))
      let end = min(all.count, start + Int.random(in: 1...4, using: &random))
      let isTaken = state.accept(Array(all[start..<end]), from: start)
      #expect(isTaken)
      while let message = state.popMessage() { got.append(message) }
    }
    #expect(got == all)
    #expect(state.waitingBytes == 0)
    #expect(state.earlyBytes == 0)
  }

  @Test("Over any network the client gets each array once and in order", arguments: 0..<20)
  func arrays(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var state = WebChannelState()
    var sent: [String] = []
    var got: [String] = []
    var acknowledged = 0
    for turn in 0..<200 {
      if turn < 150 {
        let text = "\"\(turn)é\u{1F9E1}\(String(repeating: "x", count: turn % 7 * 2000))\""
        sent.append(text)
        state.append(payload: text)
      }
      if Int.random(in: 0..<5, using: &random) == 0 { state.acknowledge(acknowledged) }
      guard Int.random(in: 0..<3, using: &random) == 0 || turn >= 190 else { continue }
      // A back channel that breaks after some chunks.
      let (number, first) = state.openBackChannel(after: acknowledged)
      var last = first
      #expect(last == acknowledged)
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        guard let chunk = state.chunk(after: last) else { break }
        last = chunk.last
        guard Int.random(in: 0..<4, using: &random) > 0 else { break }
        for (id, payload) in try Self.arrays(of: chunk.text) {
          acknowledged += 1
          #expect(id == acknowledged)
          if payload != "noop" { got.append("\"\(payload)\"") }
        }
      }
      state.closeBackChannel(number)
    }
    #expect(got == Array(sent.prefix(got.count)))
    #expect(got.count > 100)
  }

  @Test("A chunk's length counts UTF-16 units")
  func length() throws {
    var state = WebChannelState()
    state.append(payload: #"["é\#u{1F9E1}"]"#)
    let chunk = state.chunk(after: 0)
    #expect(chunk?.text == "13\n[[1,[\"é\u{1F9E1}\"]]]")
  }

  @Test("What was not acknowledged is sent again, and what was is forgotten")
  func acknowledgements() {
    var state = WebChannelState()
    for number in 1...4 { state.append(payload: "\(number)") }
    _ = state.openBackChannel(after: 0)
    let first = state.chunk(after: 0)
    #expect(first?.last == 4)
    #expect(state.heldLength == 20)
    let opened = state.openBackChannel(after: 2)
    #expect(opened.after == 2)
    let again = state.chunk(after: 2)
    #expect(again?.text == "13\n[[3,3],[4,4]]")
    #expect(state.heldLength == 10)
    #expect(state.report == "[1,4,10]")
  }

  @Test("A client that claims to have more than there was gets what comes next")
  func beyond() {
    var state = WebChannelState()
    state.append(payload: "1")
    let opened = state.openBackChannel(after: 50)
    #expect(opened.after == 1)
    let chunk = state.chunk(after: 1)
    #expect(chunk?.text == "14\n[[2,[\"noop\"]]]")
  }

  @Test("A back channel begins with a sign of life when there is nothing else")
  func noop() {
    var state = WebChannelState()
    let (number, last) = state.openBackChannel(after: 0)
    let first = state.chunk(after: last)
    #expect(first?.text == "14\n[[1,[\"noop\"]]]")
    state.keepAlive(number)
    let second = state.chunk(after: 1)
    #expect(second?.text == "14\n[[2,[\"noop\"]]]")
    state.append(payload: "3")
    state.keepAlive(number)
    let third = state.chunk(after: 2)
    #expect(third?.text == "7\n[[3,3]]")
  }

  @Test("A new back channel takes the place of the one before, which cannot close it")
  func replacement() {
    var state = WebChannelState()
    let first = state.openBackChannel(after: 0).number
    let second = state.openBackChannel(after: 0).number
    #expect(!state.isOpen(first))
    state.closeBackChannel(first)
    #expect(state.isOpen(second))
  }

  @Test("After its end a session says nothing more")
  func end() {
    var state = WebChannelState()
    state.append(payload: "1")
    state.complete()
    state.append(payload: "2")
    let chunk = state.chunk(after: 0)
    #expect(chunk?.text == "21\n[[1,1],[2,[\"close\"]]]")
    #expect(chunk?.isLastOfSession == true)
  }

  @Test("Messages far ahead of those that are there are refused", arguments: [-1, 1001])
  func tooFar(offset: Int) {
    var state = WebChannelState()
    let isTaken = state.accept(["m"], from: offset)
    #expect(!isTaken)
    let isLastTaken = state.accept(["m"], from: 1000)
    #expect(isLastTaken)
    let message = state.popMessage()
    #expect(message == nil)
  }

  @Test("Messages that wait for a missing one have a bound in bytes")
  func earlyBytes() {
    var state = WebChannelState()
    let text = String(repeating: "x", count: 3 << 20)
    let isFirstTaken = state.accept([text], from: 1)
    let isSecondTaken = state.accept([text], from: 2)
    let isAgainTaken = state.accept(["y"], from: 1)
    let isThirdTaken = state.accept([text], from: 2)
    #expect(
      [isFirstTaken, isSecondTaken, isAgainTaken, isThirdTaken] == [true, false, true, true]
    )
    let isMissingTaken = state.accept([text], from: 0)
    #expect(isMissingTaken)
    #expect(state.waitingBytes == 2 * text.utf8.count + 1)
    #expect(state.earlyBytes == 0)
  }

  @Test("A report counts what was sent and not acknowledged, once")
  func report() {
    var state = WebChannelState()
    for number in 1...3 { state.append(payload: "\(number)") }
    #expect(state.report == "[0,0,0]")
    for after in [0, 1, 0] {
      _ = state.openBackChannel(after: after)
      _ = state.chunk(after: after)
    }
    #expect(state.report == "[1,3,10]")
    state.acknowledge(3)
    #expect(state.report == "[1,3,0]")
  }

  /// Parses the arrays of a chunk and checks its length.
  ///
  /// Payloads are strings or lists of one string.
  private static func arrays(of chunk: String) throws -> [(Int, String)] {
    let halves = chunk.split(separator: "\n", maxSplits: 1)
    #expect(Int(halves[0]) == halves[1].utf16.count)
    let arrays = try JSONSerialization.jsonObject(with: Data(halves[1].utf8)) as? [[Any]] ?? []
    return arrays.compactMap { array in
      guard let id = array[0] as? Int,
        let payload = array[1] as? String ?? (array[1] as? [String])?.first
      else { return nil }
      return (id, payload)
    }
  }
}
