/// Tells a chain of events that goes round in circles from one that is merely long.
///
/// A function that writes the document which fires it, or two that write each other's, would run
/// without end; production lets them. Here such a chain is stopped once it has come round too
/// often. A chain that branches as it comes round, to ever more documents, is stopped at a number
/// of events.
package struct LoopCheck: Sendable, Hashable {
  /// How often one function may run for one document within a chain.
  package var roundsMax: Int
  /// How many events a chain of any kind may have.
  package var lengthMax: Int
  /// How many events of one function may come from one event in a circle that spreads.
  ///
  /// Counted are those before which the function has run for two other documents of the chain. So
  /// an import of any size, the stages that follow it, and what a function writes to the documents
  /// that fire it do not count; what counts is a function whose own writes make it run for
  /// documents whose writes make it run for more. Honest is only the walk through a tree, of which
  /// few are so large.
  package var spreadMax: Int

  /// Bounds far beyond what a chain of functions needs.
  package init(roundsMax: Int = 25, lengthMax: Int = 250, spreadMax: Int = 20_000) {
    self.roundsMax = roundsMax
    self.lengthMax = lengthMax
    self.spreadMax = spreadMax
  }

  /// The deliveries before one that are looked through for its function's last run; circles of more
  /// functions count as mere length.
  static let lookBackMax = 16
  /// The generation from which the deliveries of a function count against `spreadMax`.
  static let generationMin = 2

  /// Where a delivery's chain began, and its generation; `chain` has those before it, newest first.
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

  /// Why a delivery must not run that is one of `count` in a circle that spreads, or nil.
  func problem(with delivery: Delivery, count: Int, after chain: [Delivery]) -> String? {
    guard count > spreadMax, let root = delivery.origin?.root else { return nil }
    let cycle = Self.cycle(of: Step(delivery), in: chain).joined(separator: " → ")
    return "Stopped: a loop that fans out. \(cycle) comes round for ever more documents: event "
      + "\(root.sequence).\(root.index) has caused \(spreadMax) events of \(delivery.id.function) "
      + "so. Let the function return without a write when nothing is left to do, or enqueue tasks "
      + "instead, each of which begins a new chain."
  }

  /// Whether a delivery at this depth justifies reading its chain.
  func wantsLook(at depth: Int) -> Bool { depth >= roundsMax }

  /// Why a delivery must not run, or nil; `chain` holds the deliveries before it, newest first.
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

  /// The functions from this one's last run in the chain up to this run, in the order of running.
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

  /// The most names in a message.
  private static let namesMax = 10
}
