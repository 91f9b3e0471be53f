import Foundation

/// The processor use of a server and its workers, as Linux reports it.
struct ProcessorUse: Sendable {
  /// The total running time of its threads.
  var nanoseconds: Int
  /// The number of context switches, voluntary and involuntary.
  var contextSwitches: Int

  /// Runs `body` and returns the processor use of a process and its children in that time.
  ///
  /// The use is nil if there is no `/proc`. A thread that ends while `body` runs does not count.
  static func counted<Result: Sendable>(
    _ processID: Int32,
    _ body: () async throws -> Result
  ) async throws -> (result: Result, use: ProcessorUse?) {
    let before = now(processID)
    let result = try await body()
    let after = now(processID)
    guard let before, let after else { return (result, nil) }
    let use = ProcessorUse(
      nanoseconds: after.nanoseconds - before.nanoseconds,
      contextSwitches: after.contextSwitches - before.contextSwitches
    )
    return (result, use)
  }

  private static func now(_ processID: Int32) -> ProcessorUse? {
    let threads = (SystemProcesses.children(of: processID) + [processID]).flatMap {
      SystemProcesses.threads(of: $0)
    }
    guard !threads.isEmpty else { return nil }
    var use = ProcessorUse(nanoseconds: 0, contextSwitches: 0)
    for thread in threads {
      use.nanoseconds += thread.first(of: "schedstat") ?? 0
      use.contextSwitches += thread.field("voluntary_ctxt_switches:") ?? 0
      use.contextSwitches += thread.field("nonvoluntary_ctxt_switches:") ?? 0
    }
    return use
  }
}
