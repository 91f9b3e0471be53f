/// The number of CPUs of an instance.
struct CPUChoice: Sendable, Hashable {
  /// The number as Cloud Run writes it.
  let text: String
  /// True for less than one CPU, with which an instance runs one invocation at a time.
  let isFraction: Bool
  /// The reason why the wanted number was not taken, and what to do; nil if it was.
  let problem: String?

  /// Chooses the wanted number if Cloud Run allows it for the memory, else the fewest allowed.
  init(memoryMebibytes: Int, wanted: Double?) {
    let fewest = Self.fewest(for: memoryMebibytes)
    guard let wanted else {
      self.init("\(fewest)", false, nil)
      return
    }
    if wanted < 1 {
      let memoryMax = wanted < 0.5 ? 512 : 1024
      guard wanted >= 0.08, memoryMebibytes <= memoryMax else {
        let reason =
          wanted < 0.08
          ? "the fewest CPUs are 0.08"
          : "\(Self.text(wanted)) CPU allows at most \(memoryMax) MiB, and it has \(memoryMebibytes)"
        self.init("\(fewest)", false, "\(reason); it gets \(fewest). Choose other CPUs or memory.")
        return
      }
      self.init(Self.text(wanted), true, nil)
      return
    }
    guard let bounds = Self.memory[Int(wanted)], wanted == wanted.rounded() else {
      self.init(
        "\(fewest)",
        false,
        "Cloud Run has 1, 2, 4, 6 or 8 CPUs, not \(Self.text(wanted)); it gets \(fewest)."
      )
      return
    }
    guard bounds.contains(memoryMebibytes) else {
      self.init(
        "\(fewest)",
        false,
        "\(Self.text(wanted)) CPUs need \(bounds.lowerBound) to \(bounds.upperBound) MiB, and it has "
          + "\(memoryMebibytes); it gets \(fewest). Choose other CPUs or memory."
      )
      return
    }
    self.init(Self.text(wanted), false, nil)
  }

  private init(_ text: String, _ isFraction: Bool, _ problem: String?) {
    self.text = text
    self.isFraction = isFraction
    self.problem = problem
  }

  /// The memory in mebibytes that each number of CPUs allows, from Cloud Run's documentation.
  private static let memory: [Int: ClosedRange<Int>] = [
    1: 128...4096, 2: 128...8192, 4: 2048...16_384, 6: 4096...24_576, 8: 4096...32_768,
  ]

  private static func fewest(for memoryMebibytes: Int) -> Int {
    memory.sorted { $0.key < $1.key }.first { $0.value.contains(memoryMebibytes) }?.key ?? 8
  }

  private static func text(_ number: Double) -> String {
    number == number.rounded() ? "\(Int(number))" : "\(number)"
  }
}
