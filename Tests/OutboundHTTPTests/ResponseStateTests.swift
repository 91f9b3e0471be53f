@testable import OutboundHTTP
import Testing

@Suite("State of a response")
struct ResponseStateTests {
  private let head = ResponseHead(status: 200, headers: [:])

  private func received(_ state: inout ResponseState, _ count: Int) -> ResponseState.Intake {
    [UInt8](repeating: 7, count: count).withUnsafeBytes { state.received($0) }
  }

  @Test("A full buffer holds the sender up until it is taken")
  func pausing() {
    var state = ResponseState(reading: .streamed(bufferBytesMax: 10), bytesMax: 1000)
    state.headArrived(head)

    #expect(received(&state, 8) == .stored)
    #expect(received(&state, 3) == .pause)
    #expect(state.takeChunk() == .chunk([UInt8](repeating: 7, count: 8), resume: true))
    #expect(state.takeChunk() == .wait)
    #expect(received(&state, 3) == .stored)
    #expect(state.takeChunk() == .chunk([7, 7, 7], resume: false))
  }

  @Test("A piece larger than the buffer passes when nothing waits")
  func largePiece() {
    var state = ResponseState(reading: .streamed(bufferBytesMax: 10), bytesMax: 1000)
    #expect(received(&state, 500) == .stored)
    #expect(received(&state, 1) == .pause)
  }

  @Test("A pushing sender is asked to wait once, and may still push up to the bound")
  func pushing() {
    var state = ResponseState(reading: .pushed(holdBytes: 4, bufferBytesMax: 10), bytesMax: 1000)
    state.headArrived(head)

    #expect(received(&state, 3) == .stored)
    #expect(!state.isPaused)
    #expect(received(&state, 1) == .hold)
    #expect(received(&state, 6) == .stored)
    #expect(state.isPaused)
    #expect(state.takeChunk() == .chunk([UInt8](repeating: 7, count: 10), resume: true))
    #expect(!state.isPaused)
    #expect(received(&state, 3) == .stored)
    #expect(state.takeChunk() == .chunk([7, 7, 7], resume: false))
  }

  @Test("A pushing sender past the bound fails the response, after what had come")
  func pushedTooFar() {
    var state = ResponseState(reading: .pushed(holdBytes: 4, bufferBytesMax: 10), bytesMax: 1000)
    state.headArrived(head)

    // A single piece passes when nothing waits.
    #expect(received(&state, 11) == .hold)
    #expect(received(&state, 1) == .abort)
    #expect(state.takeChunk() == .chunk([UInt8](repeating: 7, count: 11), resume: true))
    guard case .failure(let error) = state.takeChunk() else {
      Issue.record("the response has not failed")
      return
    }
    #expect(error.kind == .tooLarge)
  }

  @Test("What came before a whole end is still read")
  func endAfterData() {
    var state = ResponseState(reading: .streamed(bufferBytesMax: 10), bytesMax: 1000)
    state.headArrived(head)
    #expect(received(&state, 1) == .stored)
    let isNews = state.ended(nil)
    #expect(isNews)
    #expect(state.takeChunk() == .chunk([7], resume: false))
    #expect(state.takeChunk() == .end)
  }

  @Test("What came before a failure is read, but not by a cancelled reader")
  func failureAfterData() {
    for (kind, isRead) in [(OutboundHTTPError.Kind.failed, true), (.cancelled, false)] {
      let error = OutboundHTTPError(kind, "e")
      var state = ResponseState(reading: .streamed(bufferBytesMax: 10), bytesMax: 1000)
      state.headArrived(head)
      #expect(received(&state, 1) == .stored)
      _ = state.ended(error)
      if isRead { #expect(state.takeChunk() == .chunk([7], resume: false)) }
      #expect(state.takeChunk() == .failure(error))
    }
  }

  @Test("The first ending wins")
  func firstEnding() {
    var state = ResponseState(reading: .whole, bytesMax: 1000)
    state.headArrived(head)
    let isNews = state.ended(OutboundHTTPError(.cancelled, "c"))
    let isNewsAgain = state.ended(nil)
    #expect(isNews && !isNewsAgain)
    #expect(received(&state, 1) == .abort)
    let whole = state.takeWhole()
    #expect(throws: OutboundHTTPError(.cancelled, "c")) { try whole?.get() }
  }

  @Test("An end without a head is a failure")
  func noHead() {
    var state = ResponseState(reading: .whole, bytesMax: 1000)
    let early = state.takeWhole()
    #expect(early == nil)
    let isNews = state.ended(nil)
    #expect(isNews)
    let whole = state.takeWhole()
    #expect(throws: OutboundHTTPError(.failed, "the server sent no response")) {
      try whole?.get()
    }
  }

  @Test("Interim responses are skipped and trailers dropped")
  func heads() throws {
    var parser = HeadParser(followsRedirects: false)
    var found: [ResponseHead] = []
    let lines = [
      "HTTP/1.1 103 Early Hints\r\n", "Link: x\r\n", "\r\n", "HTTP/1.1 200\r\n", "A:  b \r\n",
      "\r\n", "Trailer: t\r\n", "\r\n",
    ]
    for line in lines {
      if case .head(let head) = Array(line.utf8).withUnsafeBytes({ parser.line($0) }) {
        found.append(head)
      }
    }

    #expect(found.map(\.status) == [200])
    #expect(found.first?.headers["a"] == "b")
    #expect(found.first?.headers["link"] == nil)
  }

  @Test("An endless head is refused")
  func endlessHead() {
    var parser = HeadParser(followsRedirects: false)
    let line = Array(("A: " + String(repeating: "b", count: 1000)).utf8)
    var refused = false
    for _ in 0...HeadParser.bytesMax / 1000 {
      if case .tooLarge = line.withUnsafeBytes({ parser.line($0) }) { refused = true }
    }
    #expect(refused)
  }

  @Test(
    "Loopback is known by name and number",
    arguments: [
      ("localhost", true), ("a.localhost", true), ("127.0.0.1", true), ("127.9.9.9", true),
      ("[::1]", true), ("127.0.0.1.example.com", false), ("128.0.0.1", false), ("", false),
      ("localhost.example.com", false), ("::1", true), ("[::ffff:127.0.0.1]", false),
      ("[::ffff:10.0.0.1%25.localhost]", false), ("[localhost]", false), ("127.+0.0.1", false),
      ("127.0.0.08", false), ("127.0.0.256", false),
    ]
  )
  func loopback(host: String, isLoopback: Bool) {
    #expect(OutboundURL.isLoopback(host: host) == isLoopback)
  }

  @Test("Parts of an address are encoded, dots alone too")
  func encoding() {
    let url = OutboundURL.make(
      base: "http://h/v1/",
      path: ["a/b", "..", "é"],
      query: [("m.f", "x y"), ("m.f", "z")]
    )
    #expect(url == "http://h/v1/a%2Fb/%2E%2E/%C3%A9?m.f=x%20y&m.f=z")
  }
}
