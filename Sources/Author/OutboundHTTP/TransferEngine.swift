#if canImport(CCurl)
  import CCurl
  import LibC
  import Synchronization

  /// The owner of the thread that drives libcurl, and of the thread's mailbox.
  ///
  /// Only that thread calls libcurl, except for the call that wakes it.
  final class TransferEngine: Sendable {
    /// A command of a task to the thread.
    enum Command: Sendable {
      case start(Transfer)
      case cancel(Transfer)
      case resume(Transfer)
    }

    private struct Mailbox {
      var commands: [Command] = []
      /// The number of transfers that were submitted and have not ended.
      var submitted = 0
      var multi: MultiHandle?
      var isStopping = false
    }

    private let configuration: OutboundClient.Configuration
    private let mailbox = Mutex(Mailbox())

    /// Creates an engine without a thread.
    ///
    /// The first submission starts the thread.
    init(configuration: OutboundClient.Configuration) {
      self.configuration = configuration
    }

    /// Adds a transfer to the queue; throws if the queue is full or the thread cannot start.
    func submit(_ transfer: Transfer) throws(OutboundHTTPError) {
      let refusal: OutboundHTTPError? = mailbox.withLock { mailbox in
        let bound = configuration.connectionsMax + configuration.waitingMax
        guard mailbox.submitted < bound else {
          return OutboundHTTPError(.failed, "\(bound) requests are under way already; try later")
        }
        if mailbox.multi == nil {
          guard let multi = startThread() else {
            return OutboundHTTPError(.failed, "the thread for HTTP requests cannot start")
          }
          mailbox.multi = multi
        }
        mailbox.submitted += 1
        post(.start(transfer), to: &mailbox)
        return nil
      }
      if let refusal { throw refusal }
    }

    /// Ends a transfer immediately for its reader.
    ///
    /// The connection is released afterwards.
    func cancel(_ transfer: Transfer) {
      let isNews = transfer.ended(OutboundHTTPError(.cancelled, "the request was cancelled"))
      if isNews { mailbox.withLock { post(.cancel(transfer), to: &$0) } }
    }

    /// Resumes a transfer whose sender has to wait.
    func resume(_ transfer: Transfer) {
      mailbox.withLock { post(.resume(transfer), to: &$0) }
    }

    /// Ends the thread and all transfers in progress.
    func stop() {
      mailbox.withLock { mailbox in
        mailbox.isStopping = true
        if let multi = mailbox.multi { curl_multi_wakeup(multi.pointer) }
      }
    }

    private func post(_ command: Command, to mailbox: inout Mailbox) {
      guard let multi = mailbox.multi, !mailbox.isStopping else { return }
      mailbox.commands.append(command)
      // If the mailbox was not empty, the thread has already been woken.
      if mailbox.commands.count == 1 { curl_multi_wakeup(multi.pointer) }
    }

    /// Returns the commands since the last call; nil if the thread must end.
    fileprivate func collect(ended: Int) -> [Command]? {
      mailbox.withLock { mailbox in
        mailbox.submitted -= ended
        guard !mailbox.isStopping else {
          // From here on no other thread wakes this handle, which is about to be freed.
          mailbox.multi = nil
          return nil
        }
        defer { mailbox.commands = [] }
        return mailbox.commands
      }
    }

    private func startThread() -> MultiHandle? {
      guard Self.isLibraryReady, let pointer = curl_multi_init() else { return nil }
      let multi = MultiHandle(pointer: pointer)
      let loop = TransferLoop(
        multi: pointer,
        configuration: configuration,
        collect: { [self] in collect(ended: $0) }
      )
      let box = Unmanaged.passRetained(loop)
      #if canImport(Darwin)
        var thread: pthread_t?
      #else
        var thread = pthread_t()
      #endif
      let status = pthread_create(&thread, nil, runTransferLoop, box.toOpaque())
      guard status == 0 else {
        box.release()
        curl_multi_cleanup(pointer)
        return nil
      }
      #if canImport(Darwin)
        if let thread { pthread_detach(thread) }
      #else
        pthread_detach(thread)
      #endif
      return multi
    }

    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK
  }

  /// The multi handle as used by other threads.
  ///
  /// `@unchecked Sendable`: other threads only call `curl_multi_wakeup`, which libcurl allows. They
  /// do so under the mailbox's lock, and the thread removes the handle under the same lock before
  /// it frees the handle.
  private struct MultiHandle: @unchecked Sendable {
    let pointer: UnsafeMutableRawPointer
  }

  /// The entry point of the thread, which takes ownership of the loop and runs it.
  #if canImport(Darwin)
    private func runTransferLoop(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      Unmanaged<TransferLoop>.fromOpaque(context).takeRetainedValue().run()
      return nil
    }
  #else
    private func runTransferLoop(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
      guard let context else { return nil }
      Unmanaged<TransferLoop>.fromOpaque(context).takeRetainedValue().run()
      return nil
    }
  #endif
#endif
