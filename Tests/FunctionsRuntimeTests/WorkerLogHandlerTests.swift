import DocumentModel
import FunctionLogs
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

  @Test("In production a line has Cloud Logging's keys: time, trace, span and execution")
  func cloudLogging() {
    let lines = Lines()
    let logger = Logger(label: "test") { _ in
      WorkerLogHandler(
        level: .info,
        form: .cloudLogging(project: "p") { Timestamp(microseconds: 1_500_000) },
        write: lines.add
      )
    }
    logger.info("outside")
    let trace = TraceContext(traceParent: Self.traceParent, cloudTraceContext: nil)
    RunningInvocation.$current.withValue(RunningInvocation(id: "i1", trace: trace)) {
      logger.warning("within", metadata: ["k": "v"])
    }

    #expect(
      lines.raw.map { String(decoding: $0, as: UTF8.self) } == [
        #"{"message":"outside","severity":"INFO","time":"1970-01-01T00:00:01.500Z"}"# + "\n",
        #"{"logging.googleapis.com/labels":{"execution_id":"i1"},"#
          + #""logging.googleapis.com/spanId":"00f067aa0ba902b7","#
          + #""logging.googleapis.com/trace":"projects/p/traces/4bf92f3577b34da6a3ce929d0e0e4736","#
          + #""logging.googleapis.com/trace_sampled":true,"message":"within","#
          + #""metadata":{"k":"v"},"severity":"WARNING","time":"1970-01-01T00:00:01.500Z"}"# + "\n",
      ]
    )
  }

  private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let traceParent = "00-\(trace)-00f067aa0ba902b7-01"

  @Test("A trace comes from traceparent, else from Google's header; what is malformed is none")
  func traces() {
    func context(_ parent: String?, _ cloud: String?) -> TraceContext? {
      TraceContext(traceParent: parent, cloudTraceContext: cloud)
    }
    let both = context(Self.traceParent, "105445aa7843bc8bf206b12000100000/1;o=1")
    let cloud = context("nonsense", "\(Self.trace.uppercased())/255")
    let bare = context(nil, Self.trace)

    #expect(both?.traceID == Self.trace)
    #expect(both?.isSampled == true)
    #expect(cloud?.traceID == Self.trace)
    #expect(cloud?.spanID == "00000000000000ff")
    #expect(cloud?.isSampled == false)
    #expect(bare?.traceID == Self.trace)
    #expect(bare?.spanID == nil)
    for parent in ["", "00-0-0-0", "ff-\(Self.trace)-00f067aa0ba902b7-01", "00-\(Self.trace)"] {
      #expect(context(parent, nil) == nil)
    }
    #expect(context(nil, "") == nil)
    #expect(context(nil, String(repeating: "0", count: 32) + "/1") == nil)
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
