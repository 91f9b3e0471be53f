import Foundation

/// Runs work that blocks its thread on a thread of its own.
///
/// On a thread that all tasks share it could wait for a process that another test must end, while
/// that test waits for a thread.
package func blocking<Success: Sendable, Failure: Error>(
  _ work: @escaping @Sendable () throws(Failure) -> Success
) async throws(Failure) -> Success {
  try await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: Result(catching: work)) }
  }.get()
}
