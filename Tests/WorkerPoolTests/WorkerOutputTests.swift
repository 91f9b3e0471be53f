import Testing

@testable import WorkerPool

@Suite("Worker output")
struct WorkerOutputTests {
  @Test("Lines are cut out of whatever pieces the output arrives in", arguments: 1...7)
  func pieces(size: Int) {
    let output = Array("one\r\n\ntwo\nthree".utf8)
    var splitter = LineSplitter(lineBytesMax: 100)
    var lines: [LineSplitter.Line] = []
    for start in stride(from: 0, to: output.count, by: size) {
      lines += splitter.append(output[start..<min(start + size, output.count)])
    }
    lines += splitter.finish()

    #expect(lines.map { String(decoding: $0.bytes, as: UTF8.self) } == ["one", "", "two", "three"])
    #expect(splitter.finish() == [])
  }

  @Test("An endless line is shown in part at once, then how much it was; the next is whole again")
  func overlong() {
    var splitter = LineSplitter(lineBytesMax: 4)

    #expect(
      splitter.append("abcdefgh".utf8) == [
        LineSplitter.Line(bytes: Array("abcd".utf8), isCut: true)
      ]
    )
    #expect(
      splitter.append("ij\nkl\nmnopq".utf8) == [
        LineSplitter.Line(bytes: [], bytesDropped: 6),
        LineSplitter.Line(bytes: Array("kl".utf8)),
        LineSplitter.Line(bytes: Array("mnop".utf8), isCut: true),
      ]
    )
    #expect(splitter.finish() == [LineSplitter.Line(bytes: [], bytesDropped: 1)])
  }

  @Test("A flood is cut to the rate, and what was dropped is counted")
  func rate() {
    var limiter = OutputLimiter(
      lines: .init(perSecond: 10, burst: 3),
      bytes: .init(perSecond: 1_000, burst: 1_000)
    )
    func judge(_ bytes: Int = 1, at now: Duration = .zero) -> OutputLimiter.Verdict {
      limiter.judge(bytes: bytes, now: now)
    }

    #expect((0..<5).map { _ in judge() } == [.pass, .pass, .pass, .drop, .drop])
    #expect(judge(at: .milliseconds(100)) == .passAfter(.init(lines: 2, bytes: 2)))
    #expect(judge(at: .milliseconds(100)) == .drop)
    #expect(judge(at: .seconds(10)) == .passAfter(.init(lines: 1, bytes: 1)))
    #expect(judge(990, at: .seconds(10)) == .pass)
    #expect(judge(990, at: .seconds(10)) == .drop)
    #expect(limiter.takeDropped() == .init(lines: 1, bytes: 990))
  }

  @Test("The last lines that explain a failed start are bounded by bytes, too")
  func tailBytes() {
    var output = WorkerOutput(.init())
    for _ in 0..<WorkerOutput.tailMax {
      let line = LineSplitter.Line(bytes: Array(repeating: UInt8(ascii: "x"), count: 100_000))
      _ = output.take(line, isError: false, now: .zero)
    }
    _ = output.take(LineSplitter.Line(bytes: Array("last".utf8)), isError: true, now: .zero)

    #expect(output.tail.last == "last" && output.tail.count > 1)
    #expect(output.tail.reduce(0) { $0 + $1.utf8.count } <= WorkerOutput.tailBytesMax)
  }

  @Test("A crash report of endless lines is no longer than a readable one")
  func crashBytes() {
    var output = WorkerOutput(.init())
    let name = String(repeating: "n", count: 120_000)
    let lines =
      ["*** Signal 4: Backtracing from 0x7f***", "*** Program crashed: \(name)"]
      + (0..<50).map { "\($0) 0x0000 f\($0) + 1 in functions at /\(name)" }
      + ["Backtrace took 1s"]
    let entries = lines.flatMap {
      output.take(LineSplitter.Line(bytes: Array($0.utf8)), isError: true, now: .zero)
    }

    #expect(entries.count == 1)
    #expect(entries.reduce(0) { $0 + $1.message.utf8.count } < 100_000)
  }

  @Test("A worker that falls silent after a flood still says how much was dropped")
  func silentAfterFlood() {
    var output = WorkerOutput(WorkerFleet.Configuration(linesPerSecond: 1, linesBurst: 1))
    let line = LineSplitter.Line(bytes: Array("x".utf8))
    _ = output.take(line, isError: false, now: .zero)
    _ = output.take(line, isError: false, now: .zero)

    #expect(output.flush(now: .milliseconds(500)) == [])
    let reported = output.flush(now: .seconds(2)).map(\.message)
    #expect(reported == ["1 lines too many (1 bytes) were dropped; log less."])
    #expect(output.finish() == [])
  }

  @Test("Memory is looked at the sooner the less room there is, and rarely while nothing runs")
  func memoryWatch() {
    var watch = MemoryWatch(limitBytes: 256 << 20)
    func look(_ mebibytes: Int, others: Int = 0, isBusy: Bool = true, at now: Int = 0)
      -> MemoryWatch.Verdict
    {
      watch.look(
        ownBytes: mebibytes << 20,
        othersBytes: { others << 20 },
        isBusy: isBusy,
        now: .milliseconds(now)
      )
    }

    #expect(look(0) == .lookAgain(after: .milliseconds(62.5)))
    #expect(look(128) == .lookAgain(after: .seconds(1.0 / 32)))
    #expect(look(255) == .lookAgain(after: .milliseconds(20)))
    #expect(look(10, isBusy: false) == .lookAgain(after: .seconds(1)))
    #expect(look(256) != .exceeded)
    #expect(look(257) == .exceeded)
    #expect(look(200, others: 100, at: 1_000) == .exceeded)
    #expect(watch.usedBytes == 300 << 20)
  }

  @Test("A report of the runtime keeps level and invocation; other lines are logged as they stand")
  func forms() {
    var output = WorkerOutput(WorkerFleet.Configuration())
    func take(_ text: String, isError: Bool = false) -> [WorkerOutput.Entry] {
      output.take(LineSplitter.Line(bytes: Array(text.utf8)), isError: isError, now: .zero)
    }

    #expect(
      take(#"{"severity":"ERROR","message":"m","execution_id":"i1","metadata":{"k":"v"}}"#) == [
        WorkerOutput.Entry(level: "error", message: "m", invocation: "i1", metadata: ["k": "v"])
      ]
    )
    #expect(
      take(#"{"my":"json"}"#) == [WorkerOutput.Entry(level: "info", message: #"{"my":"json"}"#)]
    )
    #expect(take("plain") == [WorkerOutput.Entry(level: "info", message: "plain")])
    #expect(take("oops", isError: true) == [WorkerOutput.Entry(level: "warning", message: "oops")])
    #expect(output.tail == ["m", #"{"my":"json"}"#, "plain", "oops"])
  }
}
