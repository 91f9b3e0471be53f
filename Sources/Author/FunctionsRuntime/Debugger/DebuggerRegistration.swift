import HTTPSupport
import LibC
import Logging
import Manifests
import ServiceLifecycle
import Synchronization

/// A service that keeps a worker started by hand registered with a suite until the worker ends.
///
/// If the suite disappears, the worker waits for it to return. At shutdown the service first
/// releases the functions, so that running invocations can finish while the suite sends no new
/// ones.
struct DebuggerRegistration: Service {
  let hub: HubClient
  let target: String?
  let manifest: FunctionManifest
  /// A stream that yields the port once, when the worker starts to listen.
  let ports: AsyncStream<Int>
  let logger: Logger

  private static let retryWait = Duration.seconds(1)

  func run() async throws {
    var port: Int?
    for await listening in ports.cancelOnGracefulShutdown() {
      port = listening
      break
    }
    guard let port else { return }
    let registration = WorkerRegistration(
      pid: getpid(),
      port: port,
      target: target,
      manifest: manifest
    )
    let registered = Registered()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await keepRegistered(registration, registered) }
      group.addTask {
        // It throws only on cancellation, and then the registration is given back, too.
        try? await gracefulShutdown()
        if let id = registered.id.withLock({ $0 }) {
          // A suite that does not respond does not send new requests either, so the error is
          // ignored.
          try? await hub.release(id)
        }
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  private func keepRegistered(
    _ registration: WorkerRegistration,
    _ registered: Registered
  ) async throws {
    var isReported = false
    while !Task.isCancelled {
      do {
        FunctionClock.followNewSuite()
        try await hub.register(registration) { line in
          guard !line.functions.isEmpty else { return }
          registered.id.withLock { $0 = line.id }
          isReported = false
          logger.notice(
            "This process runs functions of the suite",
            metadata: [
              "functions": "\(line.functions.joined(separator: " "))", "hub": "\(hub.address)",
            ]
          )
        }
      } catch let refusal as HubClient.RefusalError where refusal.isFinal {
        StandardStreams.exit(reporting: "The suite at \(hub.address) refuses: \(refusal)")
      } catch {
        logger.debug("The suite does not answer", metadata: ["error": "\(error)"])
      }
      registered.id.withLock { $0 = nil }
      if Task.isCancelled { return }
      if !isReported {
        isReported = true
        logger.warning("The suite has gone; waiting for it", metadata: ["hub": "\(hub.address)"])
      }
      // The sleep is cancelled when the process must end, and the loop condition then ends the
      // loop.
      try? await Task.sleep(for: Self.retryWait)
    }
  }

  private final class Registered: Sendable {
    let id = Mutex<String?>(nil)
  }
}
