import Testing

@testable import WorkerPool

@Suite("Crash report")
struct CrashReportTests {
  private let report = [
    "*** Signal 4: Backtracing from 0x7f1733cf9361... done ***",
    "*** Program crashed: Illegal instruction at 0x00007f1733cf9361 ***",
    "Platform: x86_64 Linux (Debian GNU/Linux 12 (bookworm))",
    "Thread 1 \"default-qos\" crashed:",
    "  0          0x00007f17 _assertionFailure(_:_:file:line:flags:) + 225 in libswiftCore.so",
    "  1 [ra]     0x000055ae total(of:) + 116 in functions at /app/Sources/Total.swift:69:40",
    "  2 [thunk]  0x000055af partial apply for total in functions at //<compiler-generated>",
    "  3 [async]  0x000055b0 closure #1 in bill.getter in functions at /app/Sources/Bill.swift:4",
    "  4 [async]  0x000055b1 reply(to:_:) in functions at /d/FunctionsRuntime/A.swift:52",
    "  5 [async]  0x000055b2 main in functions at /app/Sources/main.swift:1",
    "...",
  ]

  @Test("A report shrinks to its reason and the function's own frames")
  func essence() {
    var crash = CrashReport()
    let verdicts = (report + ["Backtrace took 1.12s"]).map { crash.take($0) }

    #expect(verdicts.dropLast().allSatisfy { $0 == .taken })
    #expect(
      verdicts.last
        == .complete(
          """
          Crashed: Illegal instruction at 0x00007f1733cf9361
          at /app/Sources/Total.swift:69:40 in total(of:)
          at /app/Sources/Bill.swift:4 in closure #1 in bill.getter
          """
        )
    )
    #expect(crash.take("after") == .passes)
    #expect(crash.end() == nil)
  }

  @Test("A trap without a location is reported with the function's name")
  func optimized() {
    var crash = CrashReport()
    let trap =
      "  0 [system] 0x000055ae closure #1 in bill.getter + 9 in functions at //<compiler-generated>"
    let verdicts = (report.prefix(4) + [trap, report[8], "Backtrace took 1.12s"]).map {
      crash.take($0)
    }

    #expect(
      verdicts.last
        == .complete(
          """
          Crashed: Illegal instruction at 0x00007f1733cf9361
          in closure #1 in bill.getter
          """
        )
    )
  }

  @Test("A report that is cut short gives what had come, and an endless one ends")
  func incomplete() {
    var crash = CrashReport()
    for line in report.prefix(6) { _ = crash.take(line) }
    #expect(crash.end()?.hasSuffix("in total(of:)") == true)
    #expect(crash.take("next") == .passes)

    _ = crash.take(report[0])
    let verdicts = (0..<1000).map { _ in crash.take("x") }
    #expect(verdicts.contains(.complete("Crashed")))
    #expect(verdicts.last == .passes)
  }

  @Test("Lines that only look alike pass", arguments: ["*** note ***", "", "Backtrace took 1s"])
  func others(line: String) {
    var crash = CrashReport()

    #expect(crash.take(line) == .passes)
  }

  @Test(
    "The first line of a report names the reason of the crash",
    arguments: [
      ("*** Signal 4: Backtracing from 0x7f01…", "it was ended by signal 4"),
      ("*** Signal 11: Backtracing from 0x7f01…", "it was ended by signal 11"),
      ("*** Backtracing from 0x7f01…", "it crashed; its report is in the log"),
    ]
  )
  func detail(line: String, detail: String) {
    #expect(CrashReport.begins(Array(line.utf8)))
    #expect(CrashReport.detail(of: Array(line.utf8)) == detail)
  }
}
