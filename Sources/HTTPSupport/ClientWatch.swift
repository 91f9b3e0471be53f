package import NIOCore
import Synchronization

/// Looks out for the end of a connection's client while a request of it runs.
///
/// Hummingbird keeps a connection open for writing when the client closes its side, and reads no
/// further while a request runs, so that nobody else notices.
package final class ClientWatch: Sendable {
  private let isGone = Atomic(false)
  private let task = Mutex<CancellableTask?>(nil)

  /// A watch on no connection yet.
  package init() {}

  /// Runs `operation`; when the client goes away meanwhile, or has gone, the calling task is
  /// cancelled.
  ///
  /// For one operation at a time, as requests of one connection come one after the other. What the
  /// task does afterwards can only be for its own sake: nobody reads an answer.
  package func whileConnected<Value>(
    _ operation: () async throws -> Value
  ) async rethrows -> Value {
    try await withUnsafeCurrentTask { task in
      if let task { begin(CancellableTask(task)) }
      defer { self.task.withLock { $0 = nil } }
      return try await operation()
    }
  }

  /// Whether the client has gone away.
  package var hasLeft: Bool { isGone.load(ordering: .acquiring) }

  /// Watches a connection from here on; to be called on its event loop.
  package func install(on channel: any Channel) throws {
    try channel.pipeline.syncOperations.addHandler(EndOfInput(self), position: .first)
  }

  private func begin(_ running: CancellableTask) {
    task.withLock { task in
      if isGone.load(ordering: .acquiring) { running.cancel() } else { task = running }
    }
  }

  /// Cancels under the lock: `whileConnected` cannot return, and the task not end, before that.
  ///
  /// To cancel may close the connection, which tells us again: the flag keeps that from the lock.
  fileprivate func clientLeft() {
    guard !isGone.exchange(true, ordering: .acquiringAndReleasing) else { return }
    task.withLock { $0?.cancel() }
  }

  private final class EndOfInput: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    private let watch: ClientWatch

    init(_ watch: ClientWatch) {
      self.watch = watch
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if case .some(.inputClosed) = event as? ChannelEvent { watch.clientLeft() }
      context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
      watch.clientLeft()
      context.fireChannelInactive()
    }
  }
}

/// A task that somebody else may cancel, as long as it is known to run.
// `cancel` is one of the calls that any task may make; the watch's lock keeps the task alive.
private struct CancellableTask: @unchecked Sendable {
  private let task: UnsafeCurrentTask

  init(_ task: UnsafeCurrentTask) {
    self.task = task
  }

  func cancel() { task.cancel() }
}
