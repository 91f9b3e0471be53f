package import NIOCore
import Synchronization

/// Watches whether a connection's client leaves while one of its requests runs.
///
/// Hummingbird keeps a connection open for writing when the client closes its side, and reads no
/// further while a request runs, so nothing else notices.
package final class ClientWatch: Sendable {
  private let isGone = Atomic(false)
  private let task = Mutex<CancellableTask?>(nil)

  /// A watch on no connection yet.
  package init() {}

  /// Runs `operation`; cancels the calling task when the client leaves meanwhile or has left.
  ///
  /// For one operation at a time, because a connection's requests come one after the other. What
  /// the task does afterwards can only be for its own sake: nobody reads an answer.
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

  /// Watches a connection from now on; call it on the connection's event loop.
  package func install(on channel: any Channel) throws {
    try channel.pipeline.syncOperations.addHandler(EndOfInput(self), position: .first)
  }

  private func begin(_ running: CancellableTask) {
    task.withLock { task in
      if isGone.load(ordering: .acquiring) { running.cancel() } else { task = running }
    }
  }

  /// Cancels under the lock, so `whileConnected` cannot return, nor the task end, before that.
  ///
  /// Cancelling may close the connection, which calls this again; the flag then avoids the lock.
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

/// A task that others may cancel, as long as it is known to run.
// `cancel` is one of the calls that any task may make; the watch's lock keeps the task alive.
private struct CancellableTask: @unchecked Sendable {
  private let task: UnsafeCurrentTask

  init(_ task: UnsafeCurrentTask) {
    self.task = task
  }

  func cancel() { task.cancel() }
}
