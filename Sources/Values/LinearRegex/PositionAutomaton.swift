/// A small program as bit sets: each consuming step has a bit and a set of possible next steps.
///
/// It determines whether a text matches as a whole, without allocating memory. A program that tests
/// lines or words, or has more than 64 consuming steps, has no automaton.
struct PositionAutomaton {
  /// The consuming steps that can be reached; `accepts` is true if the program may end.
  private struct Reach {
    var steps: UInt64 = 0
    var accepts = false
  }

  private let positions: [Int]
  private let first: UInt64
  private let acceptsEmpty: Bool
  private let following: [UInt64]
  private let accepting: UInt64
  private let ascii: [UInt64]

  init?(_ program: Program) {
    var positions: [Int] = []
    var bits: [Int: Int] = [:]
    for (index, instruction) in program.instructions.enumerated() {
      switch instruction {
      case .assertion(.textStart), .assertion(.textEnd): continue
      case .assertion: return nil
      case .scalar, .anyScalar, .anyButNewline, .set:
        guard positions.count < 64 else { return nil }
        bits[index] = positions.count
        positions.append(index)
      case .fork, .jump, .save, .match: continue
      }
    }
    func reach(_ step: Int, _ assertions: [Assertion]) -> Reach {
      Self.reach(from: step, in: program, bits: bits, holding: assertions)
    }
    self.positions = positions
    first = reach(0, [.textStart]).steps
    acceptsEmpty = reach(0, [.textStart, .textEnd]).accepts
    following = positions.map { reach($0 + 1, []).steps }
    var accepting: UInt64 = 0
    for (bit, step) in positions.enumerated() where reach(step + 1, [.textEnd]).accepts {
      accepting |= 1 << UInt64(bit)
    }
    self.accepting = accepting
    ascii = (UInt32(0)..<128).map { Self.consuming($0, in: program, positions: positions) }
  }

  /// Returns true if `text` as a whole matches the program that the automaton was created from.
  func matchesWhole(
    _ text: String,
    in program: Program,
    work: inout Int
  ) throws(LinearPattern.SearchError) -> Bool {
    var state = first
    var matches = acceptsEmpty
    for scalar in text.unicodeScalars {
      guard work >= 0 else { throw .tooMuchWork }
      var live = state
      if scalar.isASCII {
        live &= ascii[Int(scalar.value)]
      } else {
        live &= Self.consuming(scalar.value, in: program, positions: positions)
        work -= positions.count
      }
      work -= 1 + live.nonzeroBitCount
      if live == 0 { return false }
      matches = live & accepting != 0
      state = 0
      while live != 0 {
        state |= following[live.trailingZeroBitCount]
        live &= live - 1
      }
    }
    return matches
  }

  private static func consuming(
    _ scalar: UInt32,
    in program: Program,
    positions: [Int]
  ) -> UInt64 {
    var mask: UInt64 = 0
    for (bit, step) in positions.enumerated() where program.consumes(scalar, at: step) {
      mask |= 1 << UInt64(bit)
    }
    return mask
  }

  private static func reach(
    from start: Int,
    in program: Program,
    bits: [Int: Int],
    holding assertions: [Assertion]
  ) -> Reach {
    var result = Reach()
    var seen: Set<Int> = []
    var pending = [start]
    while let step = pending.popLast() {
      guard seen.insert(step).inserted else { continue }
      switch program.instructions[step] {
      case .jump(let target): pending.append(Int(target))
      case .fork(let preferred, let other): pending += [Int(preferred), Int(other)]
      case .save: pending.append(step + 1)
      case .assertion(let assertion):
        if assertions.contains(assertion) { pending.append(step + 1) }
      case .match: result.accepts = true
      case .scalar, .anyScalar, .anyButNewline, .set:
        if let bit = bits[step] { result.steps |= 1 << UInt64(bit) }
      }
    }
    return result
  }
}
