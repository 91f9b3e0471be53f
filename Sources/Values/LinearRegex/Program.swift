/// A step of a compiled pattern.
///
/// While a pattern is parsed, targets are relative to the step itself, so that a block can be
/// copied for a counted repetition. In a finished ``Program`` they are absolute.
enum Instruction: Equatable {
  case scalar(UInt32)
  case anyScalar
  case anyButNewline
  case set(Int32)
  case fork(preferred: Int32, other: Int32)
  case jump(Int32)
  case save(Int32)
  case assertion(Assertion)
  case match
}

/// A condition on a position in the text that consumes nothing.
enum Assertion: UInt8 {
  case textStart
  case textEnd
  case lineStart
  case lineEnd
  case wordBoundary
  case noWordBoundary

  /// Returns true if the condition holds before the scalar at `position`.
  func holds(in text: [UInt32], at position: Int) -> Bool {
    switch self {
    case .textStart: position == 0
    case .textEnd: position == text.count
    case .lineStart: position == 0 || text[position - 1] == 0x0A
    case .lineEnd: position == text.count || text[position] == 0x0A
    case .wordBoundary: Self.isBoundary(in: text, at: position)
    case .noWordBoundary: !Self.isBoundary(in: text, at: position)
    }
  }

  private static func isBoundary(in text: [UInt32], at position: Int) -> Bool {
    let before = position > 0 && isWord(text[position - 1])
    let after = position < text.count && isWord(text[position])
    return before != after
  }

  private static func isWord(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
    default: false
    }
  }
}

/// A compiled pattern: its steps, the sets that they test, and its groups.
struct Program {
  /// The maximum number of steps of a program, close to what RE2's budget of 8 MB allows.
  static let instructionsMax = 100_000
  /// The maximum number of capture slots of a search over all steps, which limits its memory.
  static let captureSlotsMax = 2_000_000

  let instructions: [Instruction]
  let sets: [ScalarSet]
  let groupCount: Int
  let groupNumbers: [String: Int]
  /// The scalar with which every match begins; nil if there is no single one.
  let firstScalar: UInt32?

  /// Finishes a parsed pattern: makes its targets absolute and skips chains of jumps.
  init(relative: [Instruction], sets: [ScalarSet], groupCount: Int, groupNumbers: [String: Int]) {
    self.sets = sets
    self.groupCount = groupCount
    self.groupNumbers = groupNumbers

    // Jumps only lead forward, so a backward walk finds each target already resolved.
    var landing = Array(relative.indices)
    for index in relative.indices.reversed() {
      guard case .jump(let distance) = relative[index] else { continue }
      landing[index] = landing[index + Int(distance)]
    }
    instructions = relative.indices.map { index in
      switch relative[index] {
      case .jump(let distance): .jump(Int32(landing[index + Int(distance)]))
      case .fork(let preferred, let other):
        .fork(
          preferred: Int32(landing[index + Int(preferred)]),
          other: Int32(landing[index + Int(other)])
        )
      default: relative[index]
      }
    }
    firstScalar = Self.firstScalar(of: instructions)
  }

  private static func firstScalar(of instructions: [Instruction]) -> UInt32? {
    var step = 0
    while instructions.indices.contains(step) {
      switch instructions[step] {
      case .save: step += 1
      case .jump(let target): step = Int(target)
      case .scalar(let scalar): return scalar
      default: return nil
      }
    }
    return nil
  }

  /// Returns true if the step at `index` consumes `scalar`.
  func consumes(_ scalar: UInt32, at index: Int) -> Bool {
    switch instructions[index] {
    case .scalar(let wanted): wanted == scalar
    case .anyScalar: true
    case .anyButNewline: scalar != 0x0A
    case .set(let number): sets[Int(number)].contains(scalar)
    default: false
    }
  }
}
