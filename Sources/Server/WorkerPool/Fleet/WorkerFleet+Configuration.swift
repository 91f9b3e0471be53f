import Invocation
package import NIOCore
import NIOPosix
package import RuntimeSupport

extension WorkerFleet {
  /// The time limit of an invocation unless the function sets one; Firebase's default.
  package static let timeoutDefault = Duration.seconds(60)

  /// The settings of all workers.
  package struct Configuration: Sendable {
    /// The folder for the pool's private socket folder; short, because socket paths must be.
    package var socketFolder: String
    /// The server's variables that every worker sees: `PATH`, `HOME`, `LANG`, nothing else.
    package var environment: [String: String]
    /// Workers of a function that does not set their number.
    package var instancesMax: Int
    /// Workers of all functions together.
    package var workersMax: Int
    /// Workers that start at the same time.
    package var startsMax: Int
    /// Invocations of one function that may wait for a worker.
    package var queueMax: Int
    /// Bytes of these invocations' requests.
    package var queueBytesMax: Int
    /// How long what the event log sends may wait for a worker; then it comes again later.
    package var queueTimeout: Duration
    /// How long a call waits for a place of a function without workers; Cloud Run's wait for one.
    package var placeTimeout: Duration
    /// The same for what the event log sends: it waits there, as pending, and not in the pool.
    package var eventPlaceTimeout: Duration
    /// How long a replaced version finishes what it runs: longer than an event may take.
    package var replacedTimeMax: Duration
    /// The same while a first worker of another version waits for a place.
    package var replacedGrace: Duration
    /// How long a new worker may take to answer on its socket.
    package var startTimeout: Duration
    /// How long an abandoned invocation may take to stop before its worker is ended.
    package var cancelGrace: Duration
    /// How long a worker may take between the request to exit and the kill.
    package var terminateGrace: Duration
    /// How long running invocations may take when the server stops.
    package var drainGrace: Duration
    /// How long an unneeded worker stays.
    package var idleTimeout: Duration
    /// The waits before a dead worker is replaced.
    package var restartBackOff: BackOff
    /// Replies announced up to this size are handed over whole.
    package var wholeReplyBytesMax: Int
    /// The bytes kept of a streamed reply that its reader has not taken yet.
    package var streamBufferBytesMax: Int
    /// The longest line of a worker's output; longer lines are cut.
    package var lineBytesMax: Int
    /// One worker's lines that are logged per second in the long run, and at once.
    package var linesPerSecond: Int
    package var linesBurst: Int
    /// Bytes of one worker's lines that are logged per second in the long run, and at once.
    package var logBytesPerSecond: Int
    package var logBytesBurst: Int
    /// Memory of a worker, with all that it starts, unless its function sets it.
    package var memoryMbDefault: Int
    /// The event loops of the connections to workers.
    package var eventLoopGroup: any EventLoopGroup

    /// Settings for a developer's machine.
    package init(
      socketFolder: String = "/tmp",
      environment: [String: String] = [:],
      instancesMax: Int = FunctionEndpoint.instancesDefault,
      workersMax: Int = InvocationLimits.workersMax,
      startsMax: Int = 4,
      queueMax: Int = 1_000,
      queueBytesMax: Int = 64 << 20,
      queueTimeout: Duration = .seconds(60),
      placeTimeout: Duration = .seconds(10),
      eventPlaceTimeout: Duration = .milliseconds(250),
      replacedTimeMax: Duration = .seconds(600),
      replacedGrace: Duration = .seconds(5),
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
      self.queueTimeout = queueTimeout
      self.placeTimeout = placeTimeout
      self.eventPlaceTimeout = eventPlaceTimeout
      self.replacedTimeMax = replacedTimeMax
      self.replacedGrace = replacedGrace
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

    /// The server's own variables that a worker may see.
    package static let environmentAllowed: Set<String> = ["PATH", "HOME", "LANG"]
  }
}
