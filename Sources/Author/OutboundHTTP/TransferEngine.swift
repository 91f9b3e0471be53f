import CCurl
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Owns the thread that drives libcurl, and the thread's mailbox.
///
/// Only that thread touches libcurl, except for the call that wakes it.
final class TransferEngine: Sendable {
  /// What tasks ask the thread to do.
  enum Command: Sendable {
    case start(Transfer)
    case cancel(Transfer)
    case resume(Transfer)
  }

  private struct Mailbox {
    var commands: [Command] = []
    /// Exchanges submitted and not yet ended.
    var submitted = 0
    var multi: MultiHandle?
    var isStopping = false
  }

  private let configuration: OutboundClient.Configuration
  private let mailbox = Mutex(Mailbox())

  /// An engine without a thread; the first submission starts it.
  init(configuration: OutboundClient.Configuration) {
    self.configuration = configuration
  }

  /// Puts an exchange in line; throws when the line is full.
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

  /// Ends an exchange at once for its reader; the connection follows.
  func cancel(_ transfer: Transfer) {
    let isNews = transfer.ended(OutboundHTTPError(.cancelled, "the request was cancelled"))
    if isNews { mailbox.withLock { post(.cancel(transfer), to: &$0) } }
  }

  /// Lets a held-up sender go on.
  func resume(_ transfer: Transfer) {
    mailbox.withLock { post(.resume(transfer), to: &$0) }
  }

  /// Ends the thread and all exchanges in progress.
  func stop() {
    mailbox.withLock { mailbox in
      mailbox.isStopping = true
      if let multi = mailbox.multi { curl_multi_wakeup(multi.pointer) }
    }
  }

  private func post(_ command: Command, to mailbox: inout Mailbox) {
    guard let multi = mailbox.multi, !mailbox.isStopping else { return }
    mailbox.commands.append(command)
    // A mailbox that is not empty has already woken the thread.
    if mailbox.commands.count == 1 { curl_multi_wakeup(multi.pointer) }
  }

  /// The commands since the last call; nil when the thread must end.
  fileprivate func collect(ended: Int) -> [Command]? {
    mailbox.withLock { mailbox in
      mailbox.submitted -= ended
      guard !mailbox.isStopping else {
        // From now on nobody wakes this handle, which is about to be freed.
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

/// The multi handle as other threads see it.
///
/// `@unchecked Sendable`: other threads only call `curl_multi_wakeup`, which libcurl allows, and do
/// so under the mailbox's lock; under the same lock the thread removes the handle before freeing
/// it.
private struct MultiHandle: @unchecked Sendable {
  let pointer: UnsafeMutableRawPointer
}

/// The thread's entry: takes over the loop it is given and runs it to its end.
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
