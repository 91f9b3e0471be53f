/// Tells a chain of events that goes round in circles from one that is merely long.
///
/// A function that writes the document which fires it, or two that write each other's, would run
/// without end; production lets them. Here such a chain is stopped once it has come round too
/// often.
package struct LoopCheck: Sendable, Hashable {
  /// How often one function may run for one document within a chain.
  package var roundsMax: Int
  /// How many events a chain of any kind may have.
  package var lengthMax: Int

  /// Bounds far beyond what a chain of functions needs.
  package init(roundsMax: Int = 25, lengthMax: Int = 250) {
    self.roundsMax = roundsMax
    self.lengthMax = lengthMax
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
