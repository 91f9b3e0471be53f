import LibC
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension FunctionsApp {
  private static let hasEnvironment = Atomic(false)

  /// Returns the environment variables that functions see.
  ///
  /// Call it in the first line of a functions binary, before anything reads the environment. The
  /// result contains the variables of the process. A process that you start by hand or in a
  /// debugger can join a running suite with the address of the suite's hub in `HEARTH_HUB`. It then
  /// also gets the variables that the suite gives its workers: addresses, values of `.env` files,
  /// and secrets. These are set for the whole process, so that libraries see them too. Variables
  /// that the process already has keep their values.
  ///
  /// If no suite responds at that address, the process ends with an error message.
  public static func environment() async -> [String: String] {
    var environment = ProcessInfo.processInfo.environment
    guard let hub = HubClient(environment: environment) else { return environment }
    // Printing the help text requires no suite.
    guard !ProcessArguments.isOnlyHelp else { return environment }
    let isFirst = !hasEnvironment.exchange(true, ordering: .relaxed)
    guard isFirst else { return environment }
    do {
      let given = try await hub.environment(function: environment["FUNCTION_TARGET"])
      for (name, value) in given where environment[name] == nil {
        environment[name] = value
        setenv(name, value, 1)
      }
    } catch {
      StandardStreams.exit(
        reporting: "No suite answers at HEARTH_HUB=\(hub.address) (\(error)); start one with "
          + "`hearth start`, or correct the variable."
      )
    }
    return environment
  }

  /// Fetches the suite's variables if `main` has not fetched them; returns true if it had to.
  static func environmentIsLate() async -> Bool {
    guard !hasEnvironment.load(ordering: .relaxed) else { return false }
    _ = await environment()
    return true
  }
}
