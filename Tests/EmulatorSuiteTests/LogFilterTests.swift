import FunctionLogs
import HTTPSupport
import StatusCodes
import Testing

@testable import EmulatorSuite

@Suite("Log filter")
struct LogFilterTests {
  private func entry(_ level: String, _ time: String = "2026-11-21T07:00:00.500Z")
    -> FunctionLogEntry
  {
    FunctionLogEntry(time: time, function: "f", level: level, message: "m")
  }

  @Test("A level takes itself and the graver ones; a level of no name counts as info")
  func levels() throws {
    let filter = try LogFilter(QueryParameters("level=warning"))
    let taken = ["debug", "info", "notice", "warning", "error", "critical", "odd"].filter {
      filter.takes(entry($0))
    }
    #expect(taken == ["warning", "error", "critical"])
    #expect(try LogFilter(QueryParameters("level=info")).takes(entry("odd")))
  }

  @Test("A time takes its own lines and later ones, in whatever zone it is written")
  func times() throws {
    let day = "2026-11-21T"
    for since in ["07:00:00Z", "08:00:00%2B01:00", "07:00:00.500Z"].map({ day + $0 }) {
      #expect(try LogFilter(QueryParameters("since=\(since)")).takes(entry("info")), "\(since)")
    }
    #expect(try !LogFilter(QueryParameters("since=2026-11-21T07:00:00.501Z")).takes(entry("info")))
  }

  @Test("A trace takes its own lines")
  func traces() throws {
    let filter = try LogFilter(QueryParameters("trace=abc"))
    var own = entry("info")
    own.trace = "abc"

    #expect(filter.takes(own) && !filter.takes(entry("info")) && !filter.takesAll)
  }

  @Test("What makes no sense is refused", arguments: ["level=loud", "since=soon", "since="])
  func refused(query: String) {
    #expect(throws: StatusError.self) { try LogFilter(QueryParameters(query)) }
  }
}
