import Dispatch
import Foundation
import Testing
import TestSupport

@testable import HearthCLI

@Suite("Line writer")
struct LineWriterTests {
  /// Reads the pipe until all its writers are closed.
  private func everything(from pipe: Pipe) async -> String {
    await blocking {
      String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    }
  }

  private func flush(_ writer: LineWriter, until deadline: DispatchTime) async -> Bool {
    await blocking { writer.flush(until: deadline) }
  }

  private func writer(to pipe: Pipe, bytesMax: Int = LineWriter.bytesMax) -> LineWriter {
    LineWriter(to: pipe.fileHandleForWriting.fileDescriptor, bytesMax: bytesMax) { "\($0) dropped" }
  }

  /// Enough lines of a kilobyte to exceed the system's pipe buffer.
  private static let linesMany = 2_000
  private static let kilobyte = String(repeating: "x", count: 1_000)

  @Test("Lines come out in their order, all of them to a reader who reads")
  func order() async {
    let pipe = Pipe()
    let writer = writer(to: pipe, bytesMax: 1 << 24)
    async let text = everything(from: pipe)
    for number in 0..<Self.linesMany { writer.write("\(number) \(Self.kilobyte)") }
    _ = await flush(writer, until: .distantFuture)
    pipe.fileHandleForWriting.closeFile()

    let numbers = await text.split(separator: "\n").map { Int($0.prefix { $0 != " " }) }
    #expect(numbers == Array(0..<Self.linesMany))
  }

  @Test("Writing ends without a reader; a later reader learns how many lines were dropped")
  func unread() async {
    let pipe = Pipe()
    let writer = writer(to: pipe, bytesMax: 100_000)
    for number in 0..<Self.linesMany { writer.write("\(number) \(Self.kilobyte)") }
    writer.write("the end")

    async let text = everything(from: pipe)
    _ = await flush(writer, until: .distantFuture)
    pipe.fileHandleForWriting.closeFile()

    let lines = await text.split(separator: "\n").map(String.init)
    let numbers = lines.compactMap { Int($0.prefix { $0 != " " }) }
    let gaps = lines.filter { $0.hasSuffix(" dropped") }
    #expect(lines.last == "the end")
    #expect(!gaps.isEmpty)
    let dropped = gaps.compactMap { Int($0.prefix { $0 != " " }) }.reduce(0, +)
    let written = lines.count { $0.hasSuffix("x") }
    #expect(written + dropped == Self.linesMany)
    let order = lines.filter { $0.hasSuffix("x") }.compactMap { Int($0.prefix { $0 != " " }) }
    #expect(order == order.sorted())
    #expect(numbers.count == lines.count - 1)
  }

  @Test("A flush without a reader ends at its deadline")
  func flushIsBounded() async {
    let pipe = Pipe()
    let writer = writer(to: pipe)
    for number in 0..<Self.linesMany { writer.write("\(number) \(Self.kilobyte)") }

    #expect(await flush(writer, until: .now() + .milliseconds(10)) == false)
    // Without a reader the writer's thread ends with the test.
    signal(SIGPIPE, SIG_IGN)
    pipe.fileHandleForReading.closeFile()
    #expect(await flush(writer, until: .distantFuture))
  }

  @Test("Lines for a reader that has gone are dropped, without delaying others")
  func readerGone() async {
    signal(SIGPIPE, SIG_IGN)
    let pipe = Pipe()
    let writer = writer(to: pipe)
    pipe.fileHandleForReading.closeFile()
    for number in 0..<Self.linesMany { writer.write("\(number) \(Self.kilobyte)") }

    #expect(await flush(writer, until: .distantFuture))
  }

  @Test("A descriptor that another process made non-blocking loses nothing")
  func nonBlocking() async {
    let pipe = Pipe()
    let descriptor = pipe.fileHandleForWriting.fileDescriptor
    #expect(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0)
    let writer = writer(to: pipe, bytesMax: 1 << 24)
    for number in 0..<Self.linesMany { writer.write("\(number) \(Self.kilobyte)") }
    async let text = everything(from: pipe)
    _ = await flush(writer, until: .distantFuture)
    pipe.fileHandleForWriting.closeFile()

    #expect(await text.split(separator: "\n").count == Self.linesMany)
  }
}
