import DatabaseClient
import Foundation
import PsstModels
import TestSupport
import Testing

@testable import PsstServices

@Suite("Typing in a chat")
struct TypingStatusesTests {
  private let start = Date(timeIntervalSince1970: 1_800_000_000)
  private let zero = ContinuousClock.now

  private func snapshot(_ json: String) async throws -> DatabaseSnapshot {
    let http = ScriptedHTTP([ScriptedHTTP.json(json)])
    let settings = DatabaseSettings(url: "http://127.0.0.1:9000?ns=main")
    return try await Database(settings, http: http).reference("typing/c1").get()
  }

  private func status(_ second: Double, _ isTyping: Bool = true) -> String {
    #"{"isTyping":\#(isTyping),"timestamp":\#(Int64((start.timeIntervalSince1970 + second) * 1000))}"#
  }

  @Test("The others who type are shown, until they stop or five seconds have passed")
  func shown() async throws {
    var statuses = TypingStatuses<ContinuousClock.Instant>(without: "me")
    statuses.take(try await snapshot("null"), at: zero, date: start)
    #expect(statuses.change(at: zero) == [])
    #expect(statuses.change(at: zero) == nil)

    let both = #"{"b":\#(status(0)),"a":\#(status(0)),"me":\#(status(0)),"c":\#(status(0, false))}"#
    statuses.take(try await snapshot(both), at: zero, date: start)
    #expect(statuses.change(at: zero) == ["a", "b"])

    let later = zero.advanced(by: .seconds(3))
    let one = #"{"a":\#(status(0)),"b":\#(status(3))}"#
    statuses.take(try await snapshot(one), at: later, date: start)
    #expect(statuses.change(at: later) == nil)
    #expect(statuses.change(at: zero.advanced(by: .seconds(5))) == ["b"])
    #expect(statuses.change(at: zero.advanced(by: .seconds(8))) == [])
  }

  @Test("A status forgotten before the beginning is not shown, and later no clock matters")
  func forgotten() async throws {
    var statuses = TypingStatuses<ContinuousClock.Instant>(without: "me")
    let old = #"{"a":\#(status(-6)),"b":\#(status(-1))}"#
    statuses.take(try await snapshot(old), at: zero, date: start)
    #expect(statuses.change(at: zero) == ["b"])

    // This device's clock is a day ahead now.
    let new = #"{"a":\#(status(1)),"b":\#(status(-1))}"#
    statuses.take(try await snapshot(new), at: zero, date: start + 86_400)
    #expect(statuses.change(at: zero) == ["a", "b"])
  }

  @Test("What is no status is left out")
  func malformed() async throws {
    var statuses = TypingStatuses<ContinuousClock.Instant>(without: "me")
    let json = #"{"a":true,"b":{"isTyping":"yes","timestamp":1},"c":\#(status(0))}"#
    statuses.take(try await snapshot(json), at: zero, date: start)

    #expect(statuses.change(at: zero) == ["c"])
  }
}
