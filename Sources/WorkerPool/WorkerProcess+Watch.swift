import Logging
import NIOCore
import Subprocess
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

extension WorkerProcess {
  /// What the run of a process waits for.
  enum Event: Sendable {
    case outputEnded
    case commandsEnded
    case exited
    case waitedEnough
  }

  /// How much a worker has to do, as its memory watch needs to know it.
  final class Load: Sendable {
    private let running = Atomic(0)
    private let begun = Atomic(0)
    /// Set while the watch looks rarely.
    let isDozing = Atomic(false)

    /// An exchange is given to the worker; true when the watch has to wake.
    func begin() -> Bool {
      running.wrappingAdd(1, ordering: .relaxed)
      begun.wrappingAdd(1, ordering: .relaxed)
      return isDozing.load(ordering: .relaxed) && isDozing.exchange(false, ordering: .relaxed)
    }

    /// The worker is done with one.
    func end() { running.wrappingSubtract(1, ordering: .relaxed) }

    /// Whether something runs, or has begun since the last time this was asked.
    func wasBusy() -> Bool {
      begun.exchange(0, ordering: .relaxed) > 0 || running.load(ordering: .relaxed) > 0
    }
  }

  /// The next look at a process, while it runs.
  struct Watch {
    let eventLoop: any EventLoop
    let onExit: @Sendable () -> Void
    var next: Scheduled<Void>?
  }

  /// The process and its memory while it runs.
  var status: WorkerStatus? {
    state.withLock { state in
      state.process.map { WorkerStatus(pid: $0, memoryBytes: state.memory.usedBytes) }
    }
  }

  /// The process runs: watches it until `ended`, and calls back when it has exited.
  func began(_ process: pid_t, onExit: @escaping @Sendable () -> Void) {
    state.withLock { $0.process = process }
    ProcessFacts.offer(process)
    let eventLoop = context.configuration.eventLoopGroup.any()
    watch.withLock { $0 = Watch(eventLoop: eventLoop, onExit: onExit) }
    eventLoop.execute { self.look() }
  }

  /// The process is about to be collected: its number may soon be another's.
  func ended() {
    state.withLock { $0.process = nil }
    let next = watch.withLock { watch in
      defer { watch = nil }
      return watch?.next
    }
    next?.cancel()
  }

  /// Why it was ended by us, or nil.
  var endDetail: String? { state.withLock { $0.endDetail } }

  /// Ends it, for a reason that its callers are told.
  func end(saying detail: String) {
    state.withLock { $0.endDetail = $0.endDetail ?? detail }
    send(.kill)
  }

  /// Ends what it has started and what has left its process group.
  func endStrays() async {
    await context.strays.end(socketPath: socketPath.withLock { $0 })
  }
}

// MARK: - Memory and the end

extension WorkerProcess {
  /// Between looks at a process whose outputs have ended; the first wait, and the longest.
  private static let exitWaitMin = Duration.microseconds(200)
  private static let exitWaitMax = Duration.milliseconds(100)
  /// After this the process is known to live on without outputs.
  private static let outputlessMax = Duration.milliseconds(250)
  /// What the processes that a dead worker has left may take to close its outputs.
  private static let strayTimeMax = Duration.milliseconds(500)

  /// Looks at the process's memory, and says when to look again.
  ///
  /// On an event loop and not in a task: a server whose tasks are all busy looks in time, too.
  private func look() {
    guard let process = state.withLock({ $0.process }) else { return }
    if ProcessFacts.hasExited(process) {
      watch.withLock { $0?.onExit }?()
      return
    }
    let isBusy = load.wasBusy()
    let now = context.time.now()
    let verdict = state.withLock { state in
      state.memory.look(
        ownBytes: ProcessFacts.memoryBytes(of: process) ?? 0,
        othersBytes: {
          ProcessFacts.descendants(of: process).reduce(0) {
            $0 + (ProcessFacts.memoryBytes(of: $1) ?? 0)
          }
        },
        isBusy: isBusy,
        now: now
      )
    }
    log(state.withLock { $0.output.flush(now: now) })
    switch verdict {
    case .exceeded:
      // At once, whatever else there is to do: it may fill on.
      let detail = end(for: .tooLarge).detail
      let isThere = state.withLock { state in
        state.endDetail = state.endDetail ?? detail
        return state.process == process && kill(-process, SIGKILL) == 0
      }
      if isThere { version.workerTooLarge(self) }
      lookAgain(after: Self.exitWaitMax)
    case .lookAgain(let wait):
      if !isBusy { load.isDozing.store(true, ordering: .relaxed) }
      lookAgain(after: wait)
    }
  }

  private func lookAgain(after wait: Duration) {
    watch.withLock { watch in
      guard let eventLoop = watch?.eventLoop else { return }
      watch?.next?.cancel()
      watch?.next = eventLoop.scheduleTask(in: TimeAmount(wait)) { self.look() }
    }
  }

  /// Something is to do after a while of nothing: it is looked at soon.
  func wakeWatch() { lookAgain(after: .zero) }

  /// Returns once the process has exited and what it wrote has been read.
  ///
  /// Its outputs may end long before it, and long after it, when what it has started holds them.
  func waitForTheEnd(of process: pid_t, _ group: inout TaskGroup<Event>) async {
    var outputsOpen = 2
    var hasExited = false
    while let event = await group.next() {
      switch event {
      case .outputEnded:
        outputsOpen -= 1
        if outputsOpen == 0, hasExited { return }
        if outputsOpen == 0 {
          group.addTask {
            await self.waitForExit(of: process)
            return .exited
          }
        }
      case .exited:
        if outputsOpen == 0 || Task.isCancelled { return }
        guard !hasExited else { continue }
        hasExited = true
        kill(-process, SIGKILL)
        await endStrays()
        let until = context.time.now() + Self.strayTimeMax
        group.addTask {
          // Cancelled when the outputs have ended first.
          try? await self.context.time.sleep(until)
          return .waitedEnough
        }
      case .waitedEnough: return
      case .commandsEnded: continue
      }
    }
  }

  /// Returns once the process has exited or the task is cancelled.
  private func waitForExit(of process: pid_t) async {
    var wait = Self.exitWaitMin
    let began = context.time.now()
    var isTold = false
    while !ProcessFacts.hasExited(process) {
      let now = context.time.now()
      if !isTold, endDetail == nil, now - began > Self.outputlessMax {
        isTold = true
        context.log.append(
          function: version.function.name,
          level: "warning",
          message: "It has closed its standard output and error; what it writes is lost."
        )
      }
      do { try await context.time.sleep(now + wait) } catch { return }
      wait = min(wait * 3 / 2, Self.exitWaitMax)
    }
  }

  /// What is told of a worker that has to be ended: in the log, and to those it ran.
  func end(
    for reason: FunctionScheduler.KillReason
  ) -> (level: String, message: String, detail: String) {
    let name = version.function.name
    let limits = context.configuration
    switch reason {
    case .neverReady:
      let detail = "it did not answer within \(limits.startTimeout)"
      return ("error", "A new worker of \(name) was ended: \(detail) of its start.", detail)
    case .silent:
      let detail = "it closed a connection and then did not answer within \(limits.startTimeout)"
      return ("error", "A worker of \(name) was ended: \(detail).", detail)
    case .hung:
      let detail = "an invocation did not stop within \(limits.cancelGrace) of its cancellation"
      return ("warning", "A worker of \(name) was ended: \(detail).", detail)
    case .staying:
      let detail = "it did not exit within \(limits.terminateGrace) of being asked to"
      return ("warning", "A worker of \(name) was ended: \(detail).", detail)
    case .tooLarge:
      let memory = state.withLock { $0.memory }
      let used = MemoryWatch.text(memory.usedBytes)
      let detail = "it used \(used) of its \(MemoryWatch.text(memory.limitBytes)) memory"
      return (
        "error",
        "\(name) \(detail.dropFirst(3)) and was ended; raise options.memory.",
        detail
      )
    }
  }
}

// MARK: - Output

extension WorkerProcess {
  /// Takes in all that the process writes, as fast as it writes it.
  func read(_ output: SubprocessOutputSequence, isError: Bool) async {
    var splitter = LineSplitter(lineBytesMax: context.configuration.lineBytesMax)
    do {
      for try await piece in output {
        let lines = piece.withUnsafeBytes { splitter.append($0) }
        for line in lines { log(line, isError: isError) }
      }
    } catch {
      context.logger.debug(
        "A worker's output cannot be read",
        metadata: ["function.name": "\(version.function.name)", "error": "\(error)"]
      )
    }
    for line in splitter.finish() { log(line, isError: isError) }
    log(state.withLock { isError ? $0.output.finish() : [] })
  }

  private func log(_ line: LineSplitter.Line, isError: Bool) {
    let now = context.time.now()
    log(state.withLock { $0.output.take(line, isError: isError, now: now) })
  }

  private func log(_ entries: [WorkerOutput.Entry]) {
    for entry in entries {
      context.log.append(
        function: version.function.name,
        level: entry.level,
        message: entry.message,
        invocation: entry.invocation,
        metadata: entry.metadata
      )
    }
  }
}
