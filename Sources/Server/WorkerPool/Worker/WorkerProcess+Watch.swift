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

  /// A worker's load, as its memory watch needs to know it.
  final class Load: Sendable {
    private let running = Atomic(0)
    private let begun = Atomic(0)
    /// Set while the watch looks rarely.
    let isDozing = Atomic(false)

    /// Notes that an exchange is given to the worker; true when the watch must wake.
    func begin() -> Bool {
      running.wrappingAdd(1, ordering: .relaxed)
      begun.wrappingAdd(1, ordering: .relaxed)
      return isDozing.load(ordering: .relaxed) && isDozing.exchange(false, ordering: .relaxed)
    }

    /// Notes that the worker has finished an exchange.
    func end() { running.wrappingSubtract(1, ordering: .relaxed) }

    /// Whether something runs, or has begun since the last call.
    func wasBusy() -> Bool {
      begun.exchange(0, ordering: .relaxed) > 0 || running.load(ordering: .relaxed) > 0
    }
  }

  /// The next look at a running process.
  struct Watch {
    let eventLoop: any EventLoop
    let onExit: @Sendable () -> Void
    var next: Scheduled<Void>?
  }

  /// The process and its memory; nil when it does not run.
  var status: WorkerStatus? {
    state.withLock { state in
      state.process.map { WorkerStatus(pid: $0, memoryBytes: state.memory.usedBytes) }
    }
  }

  /// Watches a process that runs, until `ended`, and calls back when it has exited.
  func began(_ process: pid_t, onExit: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.process = process
      state.hasRun = true
    }
    ProcessFacts.offer(process)
    let eventLoop = context.configuration.eventLoopGroup.any()
    watch.withLock { $0 = Watch(eventLoop: eventLoop, onExit: onExit) }
    eventLoop.execute { self.look() }
  }

  /// Notes that the process is about to be collected: its number may soon be another's.
  func ended() {
    state.withLock { $0.process = nil }
    let next = watch.withLock { watch in
      defer { watch = nil }
      return watch?.next
    }
    next?.cancel()
  }

  /// Whether the process ended although nobody had asked it to; only once it has ended.
  var hasCrashed: Bool { state.withLock { $0.hasRun && !$0.isUnwanted } }

  /// Why the server ended the process, or nil.
  var endDetail: String? { state.withLock { $0.endDetail } }

  /// Ends the process, for a reason that its callers are told.
  func end(saying detail: String) {
    state.withLock { $0.endDetail = $0.endDetail ?? detail }
    send(.kill)
  }

  /// Ends what the process has started and what has left its process group.
  func endStrays() async {
    await context.strays.end(socketPath: socketPath.withLock { $0 })
  }
}

// MARK: - Memory and the end

extension WorkerProcess {
  /// The first and the longest wait between looks at a process whose outputs have ended.
  private static let exitWaitMin = Duration.microseconds(200)
  private static let exitWaitMax = Duration.milliseconds(100)
  /// The time after which the process is known to live on without outputs.
  private static let outputlessMax = Duration.milliseconds(250)
  /// The wait between looks at a process that was told to end.
  private static let endingWait = Duration.milliseconds(10)
  /// How long processes left by a dead worker may take to close its outputs.
  private static let strayTimeMax = Duration.milliseconds(500)

  /// Looks at the process's memory, and schedules the next look.
  ///
  /// It runs on an event loop and not in a task, so that a server whose tasks are all busy still
  /// looks in time.
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
      // This comes at once, before anything else, because the worker may go on filling memory.
      let detail = end(for: .tooLarge).detail
      let isThere = state.withLock { state in
        state.endDetail = state.endDetail ?? detail
        return state.process == process && kill(-process, SIGKILL) == 0
      }
      if isThere { version.workerTooLarge(self) }
      lookAgain(after: Self.exitWaitMax)
    case .lookAgain(let wait):
      if !isBusy { load.isDozing.store(true, ordering: .relaxed) }
      // Somebody may wait for the place of a process that was told to end.
      let isEnding = state.withLock { $0.isUnwanted }
      lookAgain(after: isEnding ? min(wait, Self.endingWait) : wait)
    }
  }

  private func lookAgain(after wait: Duration) {
    watch.withLock { watch in
      guard let eventLoop = watch?.eventLoop else { return }
      watch?.next?.cancel()
      watch?.next = eventLoop.scheduleTask(in: TimeAmount(wait)) { self.look() }
    }
  }

  /// Makes the watch look soon, because the worker has work again.
  func wakeWatch() { lookAgain(after: .zero) }

  /// Returns once the process has exited and its output has been read.
  ///
  /// Its outputs may end long before it, or long after it when processes that it has started hold
  /// them.
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
          // The task is cancelled when the outputs have ended first.
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

  /// The reason for ending a worker, for the log and for the invocations it ran.
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
    case .crashing:
      let detail = "its crash report did not end within \(limits.startTimeout)"
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
  /// Reads everything that the process writes, as fast as it writes.
  func read(_ output: SubprocessOutputSequence, isError: Bool) async {
    var splitter = LineSplitter(lineBytesMax: context.configuration.lineBytesMax)
    var isCrashing = false
    do {
      for try await piece in output {
        let lines = piece.withUnsafeBytes { splitter.append($0) }
        if isError, !isCrashing,
          CrashReport.begins(splitter.unfinished)
            || lines.contains(where: { CrashReport.begins($0.bytes) })
        {
          isCrashing = true
          crashBegan()
        }
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

  /// Keeps the processors free for others: a crash report takes up to a second of one.
  private func crashBegan() {
    let mayReport = version.workerCrashing(self)
    state.withLock { state in
      guard let process = state.process else { return }
      if mayReport { return ProcessFacts.giveWay(process) }
      state.endDetail = state.endDetail ?? "it crashed again; the last crash's report is in the log"
      kill(-process, SIGKILL)
    }
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
        trace: entry.trace,
        metadata: entry.metadata
      )
    }
  }
}
