/// A parser that reads a pattern and writes its program in one pass.
///
/// Nothing recurses: open groups are kept on an explicit stack. A block of steps has relative
/// targets, so that a counted repetition can copy it. Each group starts with a spare step that a
/// repetition turns into its fork. Each branch starts with a spare step that the next `|` turns
/// into a fork.
struct PatternParser {
  /// The maximum nesting depth of groups, as in RE2.
  static let nestingMax = 1_000
  /// The maximum number of repetitions of a part, with nested counts multiplied, as in RE2.
  static let repetitionsMax = 1_000

  struct Flags {
    var ignoresCase = false
    var dotMatchesNewline = false
    var isMultiline = false
    var swapsGreed = false
  }

  /// An open group; the first frame stands for the whole pattern.
  private struct Frame {
    var start: Int
    var offset: Int
    var branchSlot: Int
    var branchEnds: [Int] = []
    var groupNumber: Int?
    var outerFlags: Flags
    var repetitions = 1
  }

  /// The part that a following repetition operator applies to.
  private struct Atom {
    var start: Int
    var repetitions: Int
    var isRepeated = false
  }

  var reader: PatternReader
  var flags = Flags()
  private var code: [Instruction] = []
  private var sets: [ScalarSet] = []
  private var setsByScalar: [UInt32: Int32] = [:]
  private var frames: [Frame] = []
  private var atom: Atom?
  private var groupCount = 0
  private var groupNumbers: [String: Int] = [:]

  /// Compiles a pattern; throws the first error in it.
  static func compile(_ pattern: String) throws(PatternError) -> Program {
    var parser = PatternParser(reader: PatternReader(pattern))
    return try parser.run()
  }

  private init(reader: PatternReader) {
    self.reader = reader
  }

  private mutating func run() throws(PatternError) -> Program {
    try open(groupNumber: nil, offset: 0, outerFlags: flags)
    while let scalar = reader.peek() {
      try parse(scalar)
    }
    if frames.count > 1, let frame = frames.last {
      throw PatternError(message: "missing )", offset: frame.offset)
    }
    endBranches()
    try emit(.match)
    return Program(
      relative: code,
      sets: sets,
      groupCount: groupCount,
      groupNumbers: groupNumbers
    )
  }

  private mutating func parse(_ scalar: UInt32) throws(PatternError) {
    switch scalar {
    case "(": try openGroup()
    case ")": try closeGroup()
    case "|": try startBranch()
    case "*", "+", "?": try parseOperator(scalar)
    case "{": try parseCount()
    case "[":
      let set = try reader.characterClass(ignoringCase: flags.ignoresCase)
      try addSet(set)
    case ".":
      reader.advance()
      try addAtom(flags.dotMatchesNewline ? .anyScalar : .anyButNewline)
    case "^":
      reader.advance()
      try addAtom(.assertion(flags.isMultiline ? .lineStart : .textStart))
    case "$":
      reader.advance()
      try addAtom(.assertion(flags.isMultiline ? .lineEnd : .textEnd))
    case "\\": try parseEscape()
    default:
      reader.advance()
      try addLiteral(scalar)
    }
  }

  // MARK: - Single parts

  private mutating func parseEscape() throws(PatternError) {
    let start = reader.offset
    switch reader.peek(1) {
    case "A": try addAssertion(.textStart)
    case "z": try addAssertion(.textEnd)
    case "b": try addAssertion(.wordBoundary)
    case "B": try addAssertion(.noWordBoundary)
    case "Q":
      reader.advance(2)
      while let scalar = reader.peek() {
        if reader.skip("\\E") { return }
        reader.advance()
        try addLiteral(scalar)
      }
    default:
      if let group = try reader.namedClass() {
        let set = ScalarSet(
          ranges: [],
          groups: [group],
          isNegated: false,
          ignoresCase: flags.ignoresCase
        )
        try addSet(set)
      } else {
        let scalar = try reader.escapedScalar(from: start)
        try addLiteral(scalar)
      }
    }
  }

  private mutating func addAssertion(_ assertion: Assertion) throws(PatternError) {
    reader.advance(2)
    try addAtom(.assertion(assertion))
  }

  private mutating func addLiteral(_ scalar: UInt32) throws(PatternError) {
    guard flags.ignoresCase, CaseFolding.anyCase(of: scalar, satisfies: { $0 != scalar }) else {
      return try addAtom(.scalar(scalar))
    }
    if let number = setsByScalar[scalar] { return try addAtom(.set(number)) }
    setsByScalar[scalar] = Int32(sets.count)
    let set = ScalarSet(
      ranges: [scalar...scalar],
      groups: [],
      isNegated: false,
      ignoresCase: true
    )
    try addSet(set)
  }

  private mutating func addSet(_ set: ScalarSet) throws(PatternError) {
    sets.append(set)
    try addAtom(.set(Int32(sets.count - 1)))
  }

  private mutating func addAtom(_ instruction: Instruction) throws(PatternError) {
    atom = Atom(start: code.count, repetitions: 1)
    try emit(instruction)
  }

  private mutating func emit(_ instruction: Instruction) throws(PatternError) {
    guard code.count < Program.instructionsMax else { throw tooLarge() }
    code.append(instruction)
  }

  private func tooLarge() -> PatternError {
    PatternError(message: "pattern too large - compile failed", offset: reader.offset)
  }

  // MARK: - Groups and branches

  private mutating func openGroup() throws(PatternError) {
    let start = reader.offset
    let outerFlags = flags
    guard reader.peek(1) == "?" else {
      reader.advance()
      groupCount += 1
      return try open(groupNumber: groupCount, offset: start, outerFlags: outerFlags)
    }
    if let name = try reader.groupName() {
      guard groupNumbers[name] == nil else {
        throw PatternError(message: "duplicate capture group name", offset: start)
      }
      groupCount += 1
      groupNumbers[name] = groupCount
      return try open(groupNumber: groupCount, offset: start, outerFlags: outerFlags)
    }
    if try reader.groupFlags(into: &flags) {
      try open(groupNumber: nil, offset: start, outerFlags: outerFlags)
    }
  }

  private mutating func open(
    groupNumber: Int?,
    offset: Int,
    outerFlags: Flags
  ) throws(PatternError) {
    guard frames.count <= Self.nestingMax else {
      throw PatternError(message: "expression nests too deeply", offset: offset)
    }
    let start = code.count
    try emit(.jump(1))
    if let groupNumber { try emit(.save(Int32(2 * groupNumber))) }
    frames.append(
      Frame(
        start: start,
        offset: offset,
        branchSlot: code.count,
        groupNumber: groupNumber,
        outerFlags: outerFlags
      )
    )
    try emit(.jump(1))
    atom = nil
  }

  private mutating func closeGroup() throws(PatternError) {
    guard frames.count > 1 else {
      throw PatternError(message: "unexpected )", offset: reader.offset)
    }
    reader.advance()
    endBranches()
    let frame = frames.removeLast()
    if let number = frame.groupNumber { try emit(.save(Int32(2 * number + 1))) }
    flags = frame.outerFlags
    atom = Atom(start: frame.start, repetitions: frame.repetitions)
    noteRepetitions(frame.repetitions)
  }

  private mutating func startBranch() throws(PatternError) {
    reader.advance()
    atom = nil
    let end = code.count
    try emit(.jump(1))
    let last = frames.count - 1
    frames[last].branchEnds.append(end)
    let slot = frames[last].branchSlot
    code[slot] = .fork(preferred: 1, other: Int32(code.count - slot))
    frames[last].branchSlot = code.count
    try emit(.jump(1))
  }

  /// Makes the ends of all branches of the innermost group jump to the next step.
  private mutating func endBranches() {
    for end in frames.last?.branchEnds ?? [] {
      code[end] = .jump(Int32(code.count - end))
    }
  }

  private mutating func noteRepetitions(_ count: Int) {
    let last = frames.count - 1
    frames[last].repetitions = max(frames[last].repetitions, count)
  }

  // MARK: - Repetition

  private mutating func parseOperator(_ scalar: UInt32) throws(PatternError) {
    let start = reader.offset
    reader.advance()
    switch scalar {
    case "*": try repeatAtom(0, nil, from: start)
    case "+": try repeatAtom(1, nil, from: start)
    default: try repeatAtom(0, 1, from: start)
    }
  }

  private mutating func parseCount() throws(PatternError) {
    let start = reader.offset
    guard let count = reader.repetitionCount() else {
      reader.advance()
      return try addLiteral(0x7B)
    }
    let most = count.max ?? count.min
    guard count.min <= most, most <= Self.repetitionsMax else {
      throw PatternError(message: "invalid repetition size", offset: start)
    }
    try repeatAtom(count.min, count.max, from: start)
  }

  /// Repeats the last part `least` to `most` times; without `most`, at least `least` times.
  private mutating func repeatAtom(
    _ least: Int,
    _ most: Int?,
    from start: Int
  ) throws(PatternError) {
    let isLazy = reader.skip("?")
    guard let atom else {
      throw PatternError(message: "no argument for repetition operator", offset: start)
    }
    guard !atom.isRepeated else {
      throw PatternError(message: "bad repetition operator", offset: start)
    }
    // Refused before anything is copied, because nested counts multiply.
    let copies = max(most ?? least, 1)
    let repetitions = atom.repetitions * copies
    guard copies < 2 || repetitions <= Self.repetitionsMax else {
      throw PatternError(message: "invalid repetition size", offset: start)
    }
    self.atom = Atom(start: atom.start, repetitions: repetitions, isRepeated: true)
    noteRepetitions(repetitions)

    let prefersMore = isLazy == flags.swapsGreed
    if copies == 1, most != 0 {
      try repeatInPlace(atom.start, least, most, prefersMore: prefersMore)
    } else {
      try repeatByCopies(atom.start, least, most, prefersMore: prefersMore)
    }
  }

  /// Makes a part optional or a loop in place, so that nested groups need no copies.
  private mutating func repeatInPlace(
    _ start: Int,
    _ least: Int,
    _ most: Int?,
    prefersMore: Bool
  ) throws(PatternError) {
    if code[start] != .jump(1) { code.insert(.jump(1), at: start) }
    let end = code.count
    if most == nil {
      // `x*` is compiled as an optional `x+`, so that an iteration that consumes nothing ends the
      // loop, as in RE2.
      try emit(Self.fork(more: start + 1 - end, done: 1, prefersMore: prefersMore))
    }
    if least == 0 {
      code[start] = Self.fork(more: 1, done: code.count - start, prefersMore: prefersMore)
    }
  }

  private mutating func repeatByCopies(
    _ start: Int,
    _ least: Int,
    _ most: Int?,
    prefersMore: Bool
  ) throws(PatternError) {
    var body = Array(code[start...])
    if body.first == .jump(1) { body.removeFirst() }
    let optional = max((most ?? least) - least, 0)
    let steps = body.count * least + (body.count + 1) * optional + 1
    guard start + steps < Program.instructionsMax else { throw tooLarge() }
    code.removeSubrange(start...)
    for _ in 0..<least { code += body }
    if let most {
      appendOptional(body, times: optional, prefersMore: prefersMore)
      if most == 0 { code.append(.jump(1)) }
    } else {
      code.append(Self.fork(more: -body.count, done: 1, prefersMore: prefersMore))
    }
  }

  private mutating func appendOptional(_ body: [Instruction], times: Int, prefersMore: Bool) {
    let end = code.count + times * (body.count + 1)
    for _ in 0..<times {
      code.append(Self.fork(more: 1, done: end - code.count, prefersMore: prefersMore))
      code += body
    }
  }

  private static func fork(more: Int, done: Int, prefersMore: Bool) -> Instruction {
    prefersMore
      ? .fork(preferred: Int32(more), other: Int32(done))
      : .fork(preferred: Int32(done), other: Int32(more))
  }
}
