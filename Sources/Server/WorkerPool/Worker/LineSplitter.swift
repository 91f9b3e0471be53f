import LibC

/// A splitter that cuts a process's output into lines of at most `lineBytesMax` bytes.
///
/// The first part of a longer line is returned, marked as cut, as soon as it is full. The rest of
/// the line is dropped and returned as a line that reports only how much was dropped.
package struct LineSplitter {
  /// A line without its line ending.
  package struct Line: Sendable, Equatable {
    package var bytes: [UInt8]
    package var isCut = false
    /// The number of bytes dropped from the preceding, cut line; this line then has no bytes.
    package var bytesDropped = 0
  }

  private let lineBytesMax: Int
  private var pending: [UInt8] = []
  private var bytesDropped = 0
  private var isCut = false

  /// Creates a splitter that holds at most `lineBytesMax` bytes.
  package init(lineBytesMax: Int) {
    self.lineBytesMax = lineBytesMax
  }

  /// Processes output and returns the lines that it completes.
  package mutating func append(_ bytes: some Collection<UInt8>) -> [Line] {
    Array(bytes).withUnsafeBytes { append($0) }
  }

  /// Processes output and returns the lines that it completes, copying only the bytes it keeps.
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

  /// The bytes of the current line that has not ended yet.
  package var unfinished: [UInt8] { pending }

  /// Returns the last line, if the output ended without a line ending.
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
