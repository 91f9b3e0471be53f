package import FlowControl
import Manifests
package import NIOCore
import NIOPosix

extension WorkerFleet {
  /// The settings of all workers.
  package struct Configuration: Sendable {
    /// The parent of the pool's private socket folder.
    ///
    /// Its path must be short, because the length of socket paths is limited.
    package var socketFolder: String
    /// The server's environment variables that workers inherit; see `WorkerEnvironment`.
    package var environment: [String: String]
    /// The maximum number of workers of a function that does not set its own.
    package var instancesMax: Int
    /// The maximum number of workers of all functions together.
    package var workersMax: Int
    /// The maximum number of workers that start at the same time.
    package var startsMax: Int
    /// The maximum number of invocations of one function that may wait for a worker.
    package var queueMax: Int
    /// The maximum size of the waiting requests of one function, in bytes.
    package var queueBytesMax: Int
    /// The time that a delivery from the event log may wait for a worker before it is retried.
    package var queueTimeout: Duration
    /// The time that a call of a function without workers waits for a place, as on Cloud Run.
    package var placeTimeout: Duration
    /// The time that a delivery to a function without workers waits for a place.
    ///
    /// It is short because the delivery then waits in the event log, as pending, rather than in the
    /// pool.
    package var eventPlaceTimeout: Duration
    /// The time that a replaced version has to finish its invocations.
    ///
    /// It is longer than the longest timeout of a function that handles events.
    package var replacedTimeMax: Duration
    /// The time that a replaced version has while another version's first worker waits for a place.
    package var replacedGrace: Duration
    /// The time that a new worker has to respond on its socket.
    package var startTimeout: Duration
    /// The time that an abandoned invocation has to stop before its worker is ended.
    package var cancelGrace: Duration
    /// The time that a worker has to exit when asked to, before it is killed.
    package var terminateGrace: Duration
    /// The time that running invocations have when the server stops.
    package var drainGrace: Duration
    /// The time after which an unneeded idle worker is ended.
    package var idleTimeout: Duration
    /// The delays before a crashed worker is replaced.
    package var restartBackOff: BackOff
    /// The largest announced response body that is delivered as a whole.
    package var wholeReplyBytesMax: Int
    /// The maximum number of unread bytes buffered from a streamed response.
    package var streamBufferBytesMax: Int
    /// The maximum length of a line of worker output; longer lines are cut.
    package var lineBytesMax: Int
    /// The lines per second of one worker's output that are logged: sustained, and in a burst.
    package var linesPerSecond: Int
    package var linesBurst: Int
    /// The bytes per second of one worker's output that are logged: sustained, and in a burst.
    package var logBytesPerSecond: Int
    package var logBytesBurst: Int
    /// The memory limit of a worker and its descendants unless its function sets one, in MB.
    package var memoryMbDefault: Int
    /// Returns the time by which the clock of the functions is ahead of the machine's.
    package var clockLead: @Sendable () -> Duration
    /// The event loops for connections to workers.
    package var eventLoopGroup: any EventLoopGroup

    /// Creates settings; the defaults suit a developer's machine.
    package init(
      socketFolder: String = "/tmp",
      environment: [String: String] = [:],
      instancesMax: Int = FunctionEndpoint.instancesDefault,
      workersMax: Int = FunctionLimits.workersMax,
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
      clockLead: @escaping @Sendable () -> Duration = { .zero },
      eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    ) {
      self.socketFolder = socketFolder
      self.environment = WorkerEnvironment.inherited(from: environment)
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
      self.clockLead = clockLead
      self.eventLoopGroup = eventLoopGroup
    }
  }
}
