/// Cuts a process's output into lines, each at most `lineBytesMax` long.
///
/// A longer line comes out in its first part, marked as cut; the rest up to its end is dropped.
package struct LineSplitter {
  /// One line, without what ended it.
  package struct Line: Sendable, Equatable {
    package var bytes: [UInt8]
    package var isCut = false
  }

  private let lineBytesMax: Int
  private var pending: [UInt8] = []
  private var isOverlong = false

  /// A splitter that holds at most `lineBytesMax` bytes.
  package init(lineBytesMax: Int) {
    self.lineBytesMax = lineBytesMax
  }

  /// Takes output in; returns the lines that it completes.
  package mutating func append(_ bytes: some Sequence<UInt8>) -> [Line] {
    var lines: [Line] = []
    for byte in bytes {
      if byte == 0x0A {
        lines.append(take())
      } else if pending.count < lineBytesMax {
        pending.append(byte)
      } else {
        isOverlong = true
      }
    }
    return lines
  }

  /// The last line where nothing ended it, or nil.
  package mutating func finish() -> Line? {
    pending.isEmpty ? nil : take()
  }

  private mutating func take() -> Line {
    if pending.last == 0x0D { pending.removeLast() }
    defer {
      pending.removeAll(keepingCapacity: true)
      isOverlong = false
    }
    return Line(bytes: pending, isCut: isOverlong)
  }
}
