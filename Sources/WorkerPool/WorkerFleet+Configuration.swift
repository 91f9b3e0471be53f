import Invocation
package import NIOCore
import NIOPosix
package import RuntimeSupport

extension WorkerFleet {
  /// The time that an invocation has where the function does not say; Firebase's default.
  package static let timeoutDefault = Duration.seconds(60)

  /// The settings of all workers.
  package struct Configuration: Sendable {
    /// Under this folder the pool makes a private one for its sockets; short, as their paths must be.
    package var socketFolder: String
    /// What every worker sees of the server's environment: `PATH`, `HOME`, `LANG`, nothing else.
    package var environment: [String: String]
    /// Workers of a function that does not say how many.
    package var instancesMax: Int
    /// Workers of all functions together.
    package var workersMax: Int
    /// Workers that start at the same time.
    package var startsMax: Int
    /// Invocations of one function that wait for a worker.
    package var queueMax: Int
    /// Bytes of the requests of these.
    package var queueBytesMax: Int
    /// Until a new worker answers on its socket.
    package var startTimeout: Duration
    /// Until an abandoned invocation must have stopped, or its worker is ended.
    package var cancelGrace: Duration
    /// From the polite request to exit until the kill.
    package var terminateGrace: Duration
    /// What running invocations get when the server stops.
    package var drainGrace: Duration
    /// How long an unneeded worker stays.
    package var idleTimeout: Duration
    /// Waits before a worker that died is replaced.
    package var restartBackOff: BackOff
    /// Replies announced up to this size are handed over whole.
    package var wholeReplyBytesMax: Int
    /// What is kept of a streamed reply that its reader has not taken yet.
    package var streamBufferBytesMax: Int
    /// Longer lines of a worker's output are cut.
    package var lineBytesMax: Int
    /// Lines of one worker that are logged in the long run, and at once.
    package var linesPerSecond: Int
    package var linesBurst: Int
    /// Bytes of one worker's lines that are logged in the long run, and at once.
    package var logBytesPerSecond: Int
    package var logBytesBurst: Int
    /// Memory of a worker whose function does not say, with all that it starts.
    package var memoryMbDefault: Int
    /// Where connections to the workers live.
    package var eventLoopGroup: any EventLoopGroup

    /// Settings for a developer's machine.
    package init(
      socketFolder: String = "/tmp",
      environment: [String: String] = [:],
      instancesMax: Int = FunctionEndpoint.instancesDefault,
      workersMax: Int = 200,
      startsMax: Int = 4,
      queueMax: Int = 1_000,
      queueBytesMax: Int = 64 << 20,
      startTimeout: Duration = .seconds(30),
      cancelGrace: Duration = .seconds(2),
      terminateGrace: Duration = .seconds(2),
      drainGrace: Duration = .milliseconds(1_500),
      idleTimeout: Duration = .seconds(900),
      restartBackOff: BackOff = BackOff(initial: .milliseconds(50), maximum: .seconds(10)),
      wholeReplyBytesMax: Int = 64 << 10,
      streamBufferBytesMax: Int = 256 << 10,
      lineBytesMax: Int = 128 << 10,
      linesPerSecond: Int = 1_000,
      linesBurst: Int = 5_000,
      logBytesPerSecond: Int = 1 << 20,
      logBytesBurst: Int = 4 << 20,
      memoryMbDefault: Int = 256,
      eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    ) {
      self.socketFolder = socketFolder
      self.environment = environment.filter { Self.environmentAllowed.contains($0.key) }
      self.instancesMax = instancesMax
      self.workersMax = workersMax
      self.startsMax = startsMax
      self.queueMax = queueMax
      self.queueBytesMax = queueBytesMax
      self.startTimeout = startTimeout
      self.cancelGrace = cancelGrace
      self.terminateGrace = terminateGrace
      self.drainGrace = drainGrace
      self.idleTimeout = idleTimeout
      self.restartBackOff = restartBackOff
      self.wholeReplyBytesMax = wholeReplyBytesMax
      self.streamBufferBytesMax = streamBufferBytesMax
      self.lineBytesMax = lineBytesMax
      self.linesPerSecond = linesPerSecond
      self.linesBurst = linesBurst
      self.logBytesPerSecond = logBytesPerSecond
      self.logBytesBurst = logBytesBurst
      self.memoryMbDefault = memoryMbDefault
      self.eventLoopGroup = eventLoopGroup
    }

    /// The variables that a worker may see of the server's own.
    package static let environmentAllowed: Set<String> = ["PATH", "HOME", "LANG"]
  }
}
