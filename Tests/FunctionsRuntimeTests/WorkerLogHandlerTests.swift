import Invocation
import Logging
import Synchronization
import Testing

@testable import FunctionsRuntime

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

@Suite("Worker log")
struct WorkerLogHandlerTests {
  private final class Lines: Sendable {
    private let bytes = Mutex<[[UInt8]]>([])

    func add(_ line: [UInt8]) { bytes.withLock { $0.append(line) } }

    var all: [WorkerLogLine] {
      get throws {
        try bytes.withLock { lines in
          try lines.map { try JSONDecoder().decode(WorkerLogLine.self, from: Data($0)) }
        }
      }
    }

    var raw: [[UInt8]] { bytes.withLock { $0 } }
  }

  private func logger(_ lines: Lines, level: Logger.Level = .info) -> Logger {
    Logger(label: "test") { _ in WorkerLogHandler(level: level, write: lines.add) }
  }

  @Test("A message is one line with severity, metadata and the invocation of its task")
  func line() async throws {
    let lines = Lines()
    var logger = logger(lines)
    logger[metadataKey: "own"] = "1"
    let inner = logger
    logger.debug("too low")
    logger.notice("outside\nof any")
    await RunningInvocation.$current.withValue(RunningInvocation(id: "i1")) {
      async let child: Void = inner.error("within", metadata: ["k": ["a", "b"], "own": "2"])
      await child
    }

    #expect(
      try lines.all == [
        WorkerLogLine(
          severity: "NOTICE",
          message: "outside\nof any",
          executionID: nil,
          metadata: ["own": "1"]
        ),
        WorkerLogLine(
          severity: "ERROR",
          message: "within",
          executionID: "i1",
          metadata: ["k": #"["a", "b"]"#, "own": "2"]
        ),
      ]
    )
    for line in lines.raw {
      #expect(line.last == 10)
      #expect(line.count(where: { $0 == 10 }) == 1)
    }
  }

  @Test("Each level has Cloud Logging's name", arguments: Logger.Level.allCases)
  func severities(level: Logger.Level) throws {
    let lines = Lines()
    logger(lines, level: .trace).log(level: level, "x")
    let expected =
      [.trace: "DEBUG", .debug: "DEBUG"][level] ?? level.rawValue.uppercased()

    #expect(try lines.all.map(\.severity) == [expected])
  }

  @Test("A giant message is cut")
  func giant() throws {
    let lines = Lines()
    logger(lines).info("\(String(repeating: "é", count: 100_000))")
    let message = try #require(try lines.all.first?.message)

    #expect(message.utf8.count <= WorkerLogHandler.messageBytesMax + 10)
    #expect(message.hasSuffix("…"))
  }
}
