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
    if let last = splitter.finish() { lines.append(last) }

    #expect(lines.map { String(decoding: $0.bytes, as: UTF8.self) } == ["one", "", "two", "three"])
    #expect(splitter.finish() == nil)
  }

  @Test("An endless line is cut, and the next line is whole again")
  func overlong() {
    var splitter = LineSplitter(lineBytesMax: 4)

    #expect(splitter.append("abcdefgh".utf8) == [])
    #expect(
      splitter.append("ij\nkl\n".utf8) == [
        LineSplitter.Line(bytes: Array("abcd".utf8), isCut: true),
        LineSplitter.Line(bytes: Array("kl".utf8)),
      ]
    )
  }

  @Test("A flood is cut to the rate, and what was dropped is counted")
  func rate() {
    var limiter = OutputLimiter(linesPerSecond: 10, burst: 3)

    #expect((0..<5).map { _ in limiter.judge(now: .zero) } == [.pass, .pass, .pass, .drop, .drop])
    #expect(limiter.judge(now: .milliseconds(100)) == .passAfter(dropped: 2))
    #expect(limiter.judge(now: .milliseconds(100)) == .drop)
    #expect(limiter.judge(now: .seconds(10)) == .passAfter(dropped: 1))
    #expect(limiter.judge(now: .seconds(10)) == .pass)
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

@Suite("Gate of starts")
struct StartGateTests {
  @Test("So many start at once, in the order in which they asked")
  func starting() {
    var gate = StartGate<Int>(startingMax: 2, liveMax: 10)

    #expect(gate.request(1) == [1])
    #expect(gate.request(2) == [2])
    #expect(gate.request(3) == [])
    #expect(gate.request(4) == [])
    #expect(gate.ready(2) == [3])
    #expect(gate.exited(1) == [4])
  }

  @Test("When too many live, the next waits until one has exited")
  func live() {
    var gate = StartGate<Int>(startingMax: 2, liveMax: 1)
    _ = gate.request(1)
    _ = gate.ready(1)

    #expect(!gate.needsRoom)
    #expect(gate.request(2) == [])
    #expect(gate.needsRoom)
    #expect(gate.exited(1) == [2])
    #expect(!gate.needsRoom)
  }

  @Test("Who gives up waiting is not started")
  func givesUp() {
    var gate = StartGate<Int>(startingMax: 1, liveMax: 10)
    _ = gate.request(1)
    _ = gate.request(2)
    _ = gate.request(3)
    _ = gate.exited(2)

    #expect(gate.exited(1) == [3])
  }
}
