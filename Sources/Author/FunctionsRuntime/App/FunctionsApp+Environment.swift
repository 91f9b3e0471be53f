import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

extension FunctionsApp {
  private static let hasEnvironment = Atomic(false)

  /// The variables that functions see; the first line of a functions binary.
  ///
  /// They are the process's variables. A process that is started by hand or by a debugger, with the
  /// address of a suite's hub as `HEARTH_HUB`, also gets what the suite gives its workers:
  /// addresses, `.env` files and secrets. They are set for the whole process, so that libraries see
  /// them, too; variables that the process already has stay. Ends the process when no suite answers
  /// there.
  public static func environment() async -> [String: String] {
    var environment = ProcessInfo.processInfo.environment
    guard let hub = HubClient(environment: environment) else { return environment }
    // Help needs no suite.
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

  /// Gets the suite's variables unless the binary's `main` has; returns whether it had to.
  static func environmentIsLate() async -> Bool {
    guard !hasEnvironment.load(ordering: .relaxed) else { return false }
    _ = await environment()
    return true
  }
}
