/// A machine that runs all alternatives of a program over a text in lockstep.
///
/// Its time is bounded by the product of program and text. The threads at a position are in the
/// order in which a backtracking matcher would try them, and the first one to match wins, as in
/// Perl. This is Pike's machine, as in RE2 and RE2/J.
struct SearchMachine {
  /// The threads at one position of the text: program steps in order of preference, each once.
  private struct Threads {
    var steps: [Int32]
    var places: [Int32]
    var captures: [Int]
    var count = 0

    init(stepCount: Int, captureCount: Int) {
      steps = Array(repeating: 0, count: stepCount)
      places = Array(repeating: 0, count: stepCount)
      captures = Array(repeating: -1, count: stepCount * captureCount)
    }

    /// Adds a step unless it is already present; returns true if it was added.
    mutating func insert(_ step: Int) -> Bool {
      let place = Int(places[step])
      if place < count, Int(steps[place]) == step { return false }
      places[step] = Int32(count)
      steps[count] = Int32(step)
      count += 1
      return true
    }
  }

  /// A task that remains when following a step: another step, or a capture to restore.
  private enum Pending {
    case step(Int)
    case restore(slot: Int, value: Int)
  }

  private let program: Program
  private let text: [UInt32]
  private let captureCount: Int
  private var current: Threads
  private var next: Threads
  private var captures: [Int]
  private var pending: [Pending] = []
  /// The remaining work; negative if the limit was exceeded.
  private(set) var work: Int

  /// Creates a machine that records the first `captureCount` bounds of groups, two for each group.
  init(program: Program, text: [UInt32], captureCount: Int, work: Int) {
    self.program = program
    self.text = text
    self.captureCount = captureCount
    self.work = work - program.instructions.count - text.count
    current = Threads(stepCount: program.instructions.count, captureCount: captureCount)
    next = current
    captures = Array(repeating: -1, count: captureCount)
  }

  /// Returns true if the program matches the text as a whole.
  mutating func matchesWhole() throws(LinearPattern.SearchError) -> Bool {
    current.count = 0
    reach(0, at: 0, isNext: false)
    for position in text.indices {
      if current.count == 0 { return false }
      guard work >= 0 else { throw .tooMuchWork }
      next.count = 0
      for place in 0..<current.count {
        let step = Int(current.steps[place])
        if program.consumes(text[position], at: step) {
          reach(step + 1, at: position + 1, isNext: true)
        }
      }
      swap(&current, &next)
    }
    return current.steps[..<current.count].contains { program.instructions[Int($0)] == .match }
  }

  /// Returns the group bounds of the first match from `start` on, two per group, -1 where unset.
  mutating func firstMatch(from start: Int) throws(LinearPattern.SearchError) -> [Int]? {
    var result: [Int]?
    current.count = 0
    var position = start
    while position <= text.count {
      guard work >= 0 else { throw .tooMuchWork }
      work -= 1
      if result == nil, current.count == 0, let first = program.firstScalar {
        let candidate = text[position...].firstIndex(of: first) ?? text.count
        work -= candidate - position
        position = candidate
      }
      if result == nil {
        for slot in captures.indices { captures[slot] = -1 }
        captures[0] = position
        reach(0, at: position, isNext: false)
      } else if current.count == 0 {
        break
      }
      step(at: position, result: &result)
      swap(&current, &next)
      position += 1
    }
    return result
  }

  private mutating func step(at position: Int, result: inout [Int]?) {
    next.count = 0
    for place in 0..<current.count {
      let step = Int(current.steps[place])
      let base = step * captureCount
      if program.instructions[step] == .match {
        var found = Array(current.captures[base..<base + captureCount])
        found[1] = position
        result = found
        return
      }
      guard position < text.count, program.consumes(text[position], at: step) else { continue }
      for slot in 0..<captureCount { captures[slot] = current.captures[base + slot] }
      reach(step + 1, at: position + 1, isNext: true)
    }
  }

  private mutating func reach(_ step: Int, at position: Int, isNext: Bool) {
    if isNext {
      Self.follow(
        step,
        at: position,
        of: text,
        in: program,
        into: &next,
        captures: &captures,
        pending: &pending,
        work: &work
      )
    } else {
      Self.follow(
        step,
        at: position,
        of: text,
        in: program,
        into: &current,
        captures: &captures,
        pending: &pending,
        work: &work
      )
    }
  }

  /// Adds all steps that are reached from `first` without consuming, in order of preference.
  private static func follow(
    _ first: Int,
    at position: Int,
    of text: [UInt32],
    in program: Program,
    into threads: inout Threads,
    captures: inout [Int],
    pending: inout [Pending],
    work: inout Int
  ) {
    pending.append(.step(first))
    while let entry = pending.popLast() {
      work -= 1
      switch entry {
      case .restore(let slot, let value): captures[slot] = value
      case .step(let step):
        guard threads.insert(step) else { continue }
        switch program.instructions[step] {
        case .jump(let target): pending.append(.step(Int(target)))
        case .fork(let preferred, let other):
          pending.append(.step(Int(other)))
          pending.append(.step(Int(preferred)))
        case .save(let slot):
          if slot < captures.count {
            pending.append(.restore(slot: Int(slot), value: captures[Int(slot)]))
            captures[Int(slot)] = position
          }
          pending.append(.step(step + 1))
        case .assertion(let assertion):
          if assertion.holds(in: text, at: position) { pending.append(.step(step + 1)) }
        default:
          let base = step * captures.count
          work -= captures.count
          for slot in captures.indices { threads.captures[base + slot] = captures[slot] }
        }
      }
    }
  }
}
