import DatabaseTree
package import HTTPSupport
import NIOCore
import NIOHTTP1
import NIOWebSocket
import ServiceLifecycle

/// The handshake of WebSockets, and what happens over time.
extension RealtimeDatabaseService {
  /// The upgrader that turns a request for `/.ws` into a WebSocket.
  package var upgrader: HTTPService.Upgrader {
    NIOWebSocketServerUpgrader(
      maxFrameSize: DatabaseSocket.frameBytesMax,
      automaticErrorHandling: false,
      shouldUpgrade: { channel, head in
        channel.eventLoop.makeSucceededFuture(self.opening(head) == nil ? nil : [:])
      },
      upgradePipelineHandler: { channel, head in
        channel.eventLoop.makeCompletedFuture {
          guard let opening = self.opening(head) else { throw ChannelError.inputClosed }
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHandler(
            NIOWebSocketFrameAggregator(
              minNonFinalFragmentSize: 1,
              maxAccumulatedFrameCount: Self.fragmentsMax,
              maxAccumulatedFrameSize: DatabaseSocket.frameBytesMax
            )
          )
          try pipeline.addHandler(DatabaseSocket(self, opening))
        }
      }
    )
  }

  /// The maximum number of fragments of a frame; Firebase's clients send whole frames.
  private static let fragmentsMax = 64

  private func opening(_ head: HTTPRequestHead) -> DatabaseSocket.Opening? {
    let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let parameters = QueryParameters(parts.count == 2 ? parts[1] : "")
    let host = head.headers.first(name: "Host")
    // The responder answers what is wrong with the name.
    guard parts[0] == "/.ws", let host,
      let instance = try? database.instance(InstanceName.of(parameters, authority: host))
    else { return nil }
    return DatabaseSocket.Opening(
      instance: instance,
      host: host,
      upgradedSession: parameters["s"]
    )
  }

  /// The number of clients that are connected.
  package var clientsCount: Int { clients.count }

  /// Disconnects all clients; those of Firebase connect again.
  package func endAll() { clients.disconnectAll() }

  /// Starts the session of a client that receives its messages through `outlet`.
  func session(_ instance: DatabaseInstance, outlet: any MessageOutlet) -> ClientSession {
    ClientSession(instance, credentials: credentials, now: { now }, outlet: outlet)
  }

}

extension RealtimeDatabaseService: Service {
  package func run() async throws {
    do {
      try await cancelWhenGracefulShutdown {
        while true {
          try await clock.sleep(for: ClientRoster.tickInterval)
          clients.tick(atMilliseconds: now)
        }
      }
    } catch is CancellationError {
      // Nothing is left to do.
    }
  }
}
