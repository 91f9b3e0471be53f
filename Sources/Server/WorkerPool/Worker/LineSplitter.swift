#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Cuts a process's output into lines, each at most `lineBytesMax` long.
///
/// The first part of a longer line comes out, marked as cut, as soon as it is full. The rest of the
/// line is dropped and comes out as a line that only says how much was dropped.
package struct LineSplitter {
  /// One line, without its line ending.
  package struct Line: Sendable, Equatable {
    package var bytes: [UInt8]
    package var isCut = false
    /// The bytes dropped from the previous, cut line; such a line has no bytes of its own.
    package var bytesDropped = 0
  }

  private let lineBytesMax: Int
  private var pending: [UInt8] = []
  private var bytesDropped = 0
  private var isCut = false

  /// A splitter that holds at most `lineBytesMax` bytes.
  package init(lineBytesMax: Int) {
    self.lineBytesMax = lineBytesMax
  }

  /// Takes output; returns the lines that it completes.
  package mutating func append(_ bytes: some Collection<UInt8>) -> [Line] {
    Array(bytes).withUnsafeBytes { append($0) }
  }

  /// Takes output, copying no more of it than is kept.
  package mutating func append(_ bytes: UnsafeRawBufferPointer) -> [Line] {
    var lines: [Line] = []
    var rest = bytes[...]
    while let start = rest.isEmpty ? nil : UnsafeRawBufferPointer(rebasing: rest).baseAddress {
      let end = memchr(start, 0x0A, rest.count).map { UnsafeRawPointer($0) - start }
      take(rest.prefix(end ?? rest.count), &lines)
      if end != nil { endLine(&lines) }
      rest = rest.dropFirst(end.map { $0 + 1 } ?? rest.count)
    }
    return lines
  }

  /// What there is of a line that has not ended.
  package var unfinished: [UInt8] { pending }

  /// The last line, when nothing ends it.
  package mutating func finish() -> [Line] {
    var lines: [Line] = []
    if !pending.isEmpty || isCut { endLine(&lines) }
    return lines
  }

  private mutating func take(_ part: Slice<UnsafeRawBufferPointer>, _ lines: inout [Line]) {
    let kept = isCut ? 0 : min(part.count, lineBytesMax - pending.count)
    pending += part.prefix(kept)
    if part.count > kept, !isCut {
      isCut = true
      lines.append(Line(bytes: pending, isCut: true))
      pending = []
    }
    bytesDropped += part.count - kept
  }

  private mutating func endLine(_ lines: inout [Line]) {
    if pending.last == 0x0D { pending.removeLast() }
    lines.append(Line(bytes: pending, bytesDropped: bytesDropped))
    pending.removeAll(keepingCapacity: true)
    bytesDropped = 0
    isCut = false
  }
}
