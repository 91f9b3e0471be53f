/// A check that distinguishes a chain of events that loops from a chain that is merely long.
///
/// A function that writes the document that triggers it would run without end, as would two
/// functions that write each other's documents. Production allows both. Here such a chain is
/// stopped once it has looped too often. A loop that branches to ever more documents is stopped at
/// a number of events.
package struct LoopCheck: Sendable, Hashable {
  /// The maximum number of runs of one function for one document within a chain.
  package var roundsMax: Int
  /// The maximum number of events in a chain of any kind.
  package var lengthMax: Int
  /// The maximum number of events of one function that one event may cause in a spreading loop.
  ///
  /// An event counts if the function has already run for two other documents of the chain. An
  /// import of any size, its later stages, and writes to the documents that trigger the function do
  /// not count. What counts is a function whose own writes trigger it for documents whose writes
  /// trigger it for more documents. The only legitimate case is a walk through a tree, and few
  /// trees are so large.
  package var spreadMax: Int

  /// Creates a check; the default bounds are far beyond the needs of legitimate chains.
  package init(roundsMax: Int = 25, lengthMax: Int = 250, spreadMax: Int = 20_000) {
    self.roundsMax = roundsMax
    self.lengthMax = lengthMax
    self.spreadMax = spreadMax
  }

  /// The number of deliveries before a delivery that are searched for its function's last run.
  ///
  /// Loops of more functions count only toward the length of the chain.
  static let lookBackMax = 16
  /// The generation from which the deliveries of a function count against `spreadMax`.
  static let generationMin = 2

  /// Returns the origin of a delivery's chain and its generation.
  ///
  /// `chain` contains the deliveries before it, newest first.
  static func origin(of delivery: Delivery, cause: DeliveryCause, after chain: [Delivery])
    -> Delivery.Origin
  {
    let parent = chain.first
    let root =
      parent?.origin?.root ?? (parent?.cause == nil ? parent?.id.place : nil) ?? cause.id.place
    let before = chain.first { $0.id.function == delivery.id.function }
    let isOther = before.map { $0.subject != delivery.subject } ?? false
    let generation = (before?.origin?.generation ?? 0) + (isOther ? 1 : 0)
    return Delivery.Origin(root: root, generation: generation)
  }

  /// Returns the reason to stop a delivery in a spreading loop; nil if it may run.
  ///
  /// `count` is the number of deliveries that the loop's first event has caused for the function.
  func problem(with delivery: Delivery, count: Int, after chain: [Delivery]) -> String? {
    guard count > spreadMax, let root = delivery.origin?.root else { return nil }
    let cycle = Self.cycle(of: Step(delivery), in: chain).joined(separator: " → ")
    return "Stopped: a loop that fans out. \(cycle) comes round for ever more documents: event "
      + "\(root.sequence).\(root.index) has caused \(spreadMax) events of \(delivery.id.function) "
      + "so. Let the function return without a write when nothing is left to do, or enqueue tasks "
      + "instead, each of which begins a new chain."
  }

  /// Indicates whether the chain of a delivery at this depth must be read.
  func wantsLook(at depth: Int) -> Bool { depth >= roundsMax }

  /// Returns the reason to stop a delivery that loops or has too long a chain; nil if it may run.
  ///
  /// `chain` contains the deliveries before it, newest first.
  func problem(with delivery: Delivery, after chain: [Delivery]) -> String? {
    let step = Step(delivery)
    let rounds = chain.count { Step($0) == step }
    guard rounds >= roundsMax || delivery.depth >= lengthMax else { return nil }
    let cycle = Self.cycle(of: step, in: chain).joined(separator: " → ")
    guard rounds >= roundsMax else {
      return
        "Stopped: a chain of \(delivery.depth) events, each caused by the one before: \(cycle). "
        + "If that is meant, enqueue a task instead, which begins a new chain."
    }
    return "Stopped: a loop. \(cycle) has come round \(rounds) times for \(delivery.subject). Let "
      + "the function return without a write when nothing is left to do."
  }

  /// Returns the functions of a loop in running order.
  ///
  /// They are those from this function's last run in the chain to this run.
  private static func cycle(of step: Step, in chain: [Delivery]) -> [String] {
    var names: [String] = []
    for delivery in chain.prefix(namesMax) {
      names.append(delivery.id.function)
      if delivery.id.function == step.function { break }
    }
    return names.reversed() + [step.function]
  }

  private struct Step: Hashable {
    var function: String
    var subject: String

    init(_ delivery: Delivery) {
      function = delivery.id.function
      subject = delivery.subject
    }
  }

  /// The maximum number of names in a message.
  private static let namesMax = 10
}
