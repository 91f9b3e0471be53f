#if canImport(CCurl)
  import CCurl
  import LibC

  /// The loop of the engine's thread, which starts, drives and ends transfers.
  ///
  /// The engine creates it. After that only its thread uses it.
  final class TransferLoop {
    /// The maximum number of idle easy handles that are kept for reuse.
    ///
    /// Each has a few kilobytes.
    private static let idleHandlesMax = 64
    /// The longest sleep of a thread that has nothing to do.
    ///
    /// A wakeup interrupts it.
    private static let idleMilliseconds: Int32 = 10_000
    /// The interval for checking whether queued transfers have exceeded their time limit.
    private static let lineCheckMilliseconds: Int32 = 50

    private let multi: UnsafeMutableRawPointer
    private let connectionsMax: Int
    private let certificateAuthorities: String?
    private let collect: (_ ended: Int) -> [TransferEngine.Command]?
    private var exchanges: [ObjectIdentifier: EasyTransfer] = [:]
    private var byHandle: [UnsafeMutableRawPointer: EasyTransfer] = [:]
    /// The queued transfers in order of submission.
    ///
    /// Those before `waitingStart` have left the queue.
    private var waiting: [Transfer] = []
    private var waitingStart = 0
    private var lineChecked = ContinuousClock.now
    private var idle: [UnsafeMutableRawPointer] = []
    private var endedCount = 0

    /// Creates a loop that drives `multi` and frees it at its end.
    ///
    /// `collect` receives the number of transfers that ended since its last call and returns
    /// commands.
    init(
      multi: UnsafeMutableRawPointer,
      configuration: OutboundClient.Configuration,
      collect: @escaping (_ ended: Int) -> [TransferEngine.Command]?
    ) {
      self.multi = multi
      connectionsMax = configuration.connectionsMax
      certificateAuthorities = configuration.certificateAuthorities
      self.collect = collect
    }

    /// Runs the loop until the engine stops.
    func run() {
      // Signals are handled by other threads of the process. A broken pipe is reported as an error
      // code here.
      var signals = sigset_t()
      sigfillset(&signals)
      pthread_sigmask(SIG_SETMASK, &signals, nil)
      ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, connectionsMax)
      while let commands = takeCommands() {
        for command in commands { obey(command) }
        startWaiting()
        var running: Int32 = 0
        curl_multi_perform(multi, &running)
        endFinished()
        let isLate = !waiting.isEmpty && exchanges.count < connectionsMax
        let pause =
          isLate ? 0 : waiting.isEmpty ? Self.idleMilliseconds : Self.lineCheckMilliseconds
        curl_multi_poll(multi, nil, 0, pause, nil)
      }
      tearDown()
    }

    private func takeCommands() -> [TransferEngine.Command]? {
      defer { endedCount = 0 }
      return collect(endedCount)
    }

    private func obey(_ command: TransferEngine.Command) {
      switch command {
      case .start(let transfer): waiting.append(transfer)
      case .cancel(let transfer):
        if let exchange = exchanges[ObjectIdentifier(transfer)] { release(exchange) }
      case .resume(let transfer):
        if let exchange = exchanges[ObjectIdentifier(transfer)] {
          curl_easy_pause(exchange.easy, CURLPAUSE_CONT)
        }
      }
    }

    private func startWaiting() {
      guard !waiting.isEmpty else { return }
      let now = ContinuousClock.now
      while waitingStart < waiting.count, exchanges.count < connectionsMax {
        let transfer = waiting[waitingStart]
        waitingStart += 1
        if isStillWanted(transfer, now: now) { start(transfer, now: now) }
      }
      let isCheckDue = now - lineChecked >= .milliseconds(Int(Self.lineCheckMilliseconds))
      guard waitingStart == waiting.count || isCheckDue else { return }
      waiting = waiting[waitingStart...].filter { isStillWanted($0, now: now) }
      waitingStart = 0
      lineChecked = now
    }

    /// Returns true if a queued transfer must still start.
    ///
    /// Ends a transfer that has exceeded its time limit. The result is then false, as for a
    /// cancelled transfer.
    private func isStillWanted(_ transfer: Transfer, now: ContinuousClock.Instant) -> Bool {
      if let deadline = transfer.deadline, deadline <= now {
        transfer.ended(OutboundHTTPError(.timedOut, "no connection was free in time"))
      }
      guard transfer.isEnded else { return true }
      endedCount += 1
      return false
    }

    private func start(_ transfer: Transfer, now: ContinuousClock.Instant) {
      guard let easy = idle.popLast() ?? curl_easy_init() else {
        transfer.ended(OutboundHTTPError(.failed, "libcurl has no memory for a request"))
        endedCount += 1
        return
      }
      let exchange = EasyTransfer(transfer, easy: easy)
      exchanges[ObjectIdentifier(transfer)] = exchange
      byHandle[easy] = exchange
      exchange.configure(now: now, certificateAuthorities: certificateAuthorities)
      let status = curl_multi_add_handle(multi, easy)
      guard status == CURLM_OK else {
        transfer.ended(
          OutboundHTTPError(.failed, String(cString: curl_multi_strerror(status)))
        )
        release(exchange)
        return
      }
    }

    private func endFinished() {
      var left: Int32 = 0
      while let message = curl_multi_info_read(multi, &left) {
        guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else {
          continue
        }
        let code = message.pointee.data.result
        guard let exchange = byHandle[easy] else { continue }
        exchange.finish(code)
        release(exchange)
      }
    }

    /// Releases the easy handle for reuse.
    ///
    /// The connection stays open if the protocol allows it.
    private func release(_ exchange: EasyTransfer) {
      exchanges[ObjectIdentifier(exchange.transfer)] = nil
      byHandle[exchange.easy] = nil
      endedCount += 1
      curl_multi_remove_handle(multi, exchange.easy)
      exchange.freeHeaders()
      if idle.count < Self.idleHandlesMax {
        curl_easy_reset(exchange.easy)
        idle.append(exchange.easy)
      } else {
        curl_easy_cleanup(exchange.easy)
      }
    }

    private func tearDown() {
      let error = OutboundHTTPError(.cancelled, "the client was let go")
      for exchange in Array(exchanges.values) {
        exchange.transfer.ended(error)
        release(exchange)
      }
      for transfer in waiting[waitingStart...] { transfer.ended(error) }
      for easy in idle { curl_easy_cleanup(easy) }
      curl_multi_cleanup(multi)
    }
  }
#endif
