import LibC
import Logging
import NIOCore
import Subprocess
import Synchronization

extension WorkerProcess {
  /// An event in the life of a running process.
  enum Event: Sendable {
    case outputEnded
    case commandsEnded
    case exited
    case waitedEnough
  }

  /// A worker's load, as its memory watch reads it.
  final class Load: Sendable {
    private let running = Atomic(0)
    private let begun = Atomic(0)
    /// True while the watch samples only rarely.
    let isDozing = Atomic(false)

    /// Records that the worker is given an invocation; returns true if the watch must wake.
    func begin() -> Bool {
      running.wrappingAdd(1, ordering: .relaxed)
      begun.wrappingAdd(1, ordering: .relaxed)
      return isDozing.load(ordering: .relaxed) && isDozing.exchange(false, ordering: .relaxed)
    }

    /// Records that the worker has finished an invocation.
    func end() { running.wrappingSubtract(1, ordering: .relaxed) }

    /// Returns true if an invocation runs, or has begun since the last call.
    func wasBusy() -> Bool {
      begun.exchange(0, ordering: .relaxed) > 0 || running.load(ordering: .relaxed) > 0
    }
  }

  /// The schedule of the samples of a running process.
  struct Watch {
    let eventLoop: any EventLoop
    let onExit: @Sendable () -> Void
    var next: Scheduled<Void>?
  }

  /// The process and its memory; nil if it is not running.
  var status: WorkerStatus? {
    state.withLock { state in
      state.process.map { WorkerStatus(pid: $0, memoryBytes: state.memory.usedBytes) }
    }
  }

  /// Starts watching a running process, until `ended`; calls `onExit` when it has exited.
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

  /// Stops watching, before the process is reaped and its ID may be reused.
  func ended() {
    state.withLock { $0.process = nil }
    let next = watch.withLock { watch in
      defer { watch = nil }
      return watch?.next
    }
    next?.cancel()
  }

  /// True if the process has begun to write a crash report.
  var hasBegunReport: Bool { state.withLock { $0.hasBegunReport } }

  /// True if the process ended without being asked to; valid only once it has ended.
  var hasCrashed: Bool { state.withLock { $0.hasRun && !$0.isUnwanted } }

  /// The reason why the server ended the process; nil if it did not.
  var endDetail: String? { state.withLock { $0.endDetail } }

  /// Kills the process for a reason that is reported to its callers.
  func end(saying detail: String) {
    state.withLock { $0.endDetail = $0.endDetail ?? detail }
    send(.kill)
  }

  /// Kills descendants of the process that have left its process group.
  func endStrays() async {
    await context.strays.end(socketPath: socketPath.withLock { $0 })
  }
}

// MARK: - Memory and exit

extension WorkerProcess {
  /// The first and the longest wait between checks of a process whose outputs have closed.
  private static let exitWaitMin = Duration.microseconds(200)
  private static let exitWaitMax = Duration.milliseconds(100)
  /// The time after which a process is considered to continue without outputs.
  private static let outputlessMax = Duration.milliseconds(250)
  /// The wait between samples of a process that was asked to end.
  private static let endingWait = Duration.milliseconds(10)
  /// The time that descendants of an exited worker have to close its outputs.
  private static let strayTimeMax = Duration.milliseconds(500)

  /// Samples the process's memory and schedules the next sample.
  ///
  /// It runs on an event loop rather than in a task. It is therefore on time even if all threads of
  /// the server's tasks are busy.
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
      // The worker is killed before anything else, because it may continue to fill memory.
      let detail = end(for: .tooLarge).detail
      let isThere = state.withLock { state in
        state.endDetail = state.endDetail ?? detail
        return state.process == process && kill(-process, SIGKILL) == 0
      }
      if isThere { version.workerTooLarge(self) }
      lookAgain(after: Self.exitWaitMax)
    case .lookAgain(let wait):
      if !isBusy { load.isDozing.store(true, ordering: .relaxed) }
      // Another worker may be waiting for the place of a process that was asked to end.
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

  /// Schedules a sample soon, because the worker has work again or is to end.
  func wakeWatch() { lookAgain(after: .zero) }

  /// Returns once the process has exited and its output has been read.
  ///
  /// Its outputs may close long before it exits, or long after if descendants hold them open. In
  /// the second case, reading stops after `strayTimeMax`.
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
          // The sleep is cancelled if the outputs close first.
          try? await self.context.time.sleep(until)
          return .waitedEnough
        }
      case .waitedEnough: return
      case .commandsEnded: continue
      }
    }
  }

  private func waitForExit(of process: pid_t) async {
    var wait = Self.exitWaitMin
    let began = context.time.now()
    var isReported = false
    while !ProcessFacts.hasExited(process) {
      let now = context.time.now()
      if !isReported, endDetail == nil, now - began > Self.outputlessMax {
        isReported = true
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

  /// Returns the reason for ending a worker, for the log and for its invocations.
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
    case .drained:
      let detail = "its version had to stop before it had ended by itself"
      return ("info", "A worker of \(name) was ended: \(detail).", detail)
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
  /// Reads all output of the process, as fast as the process writes it.
  func read(_ output: SubprocessOutputSequence, isError: Bool) async {
    var splitter = LineSplitter(lineBytesMax: context.configuration.lineBytesMax)
    var isCrashing = false
    do {
      for try await piece in output {
        let lines = piece.withUnsafeBytes { splitter.append($0) }
        if isError, !isCrashing,
          let begin = ([splitter.unfinished] + lines.map(\.bytes)).first(where: CrashReport.begins)
        {
          isCrashing = true
          crashBegan(CrashReport.detail(of: begin))
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

  /// Fails what the crashing process runs, and lowers its priority.
  ///
  /// A crash report takes up to two seconds of processor time. The process is killed if it may not
  /// write one.
  private func crashBegan(_ detail: String) {
    state.withLock { $0.hasBegunReport = true }
    let refusal = version.workerCrashing(self, detail: detail)
    state.withLock { state in
      guard let process = state.process else { return }
      guard let refusal else { return ProcessFacts.giveWay(process) }
      state.endDetail = state.endDetail ?? refusal
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
