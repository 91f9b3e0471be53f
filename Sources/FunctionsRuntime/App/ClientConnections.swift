import NIOCore
import Synchronization

/// Cancels a request's work when its client goes away.
///
/// A small handler sits in the pipeline of each connection, from its first request until the
/// connection is closed. Requests of one connection come one after the other.
final class ClientConnections: Sendable {
  private let watches = Mutex<[ObjectIdentifier: ClientWatch]>([:])

  /// Runs `work` in a task that is cancelled when the client closes the connection or its half of
  /// it, and when the caller's task is cancelled.
  func cancelling<Result: Sendable>(
    when channel: any Channel,
    _ work: @escaping @Sendable () async -> Result
  ) async throws -> Result {
    let watch = try await watch(of: channel)
    // Owned by this call, which waits for its end: a handle is needed to cancel it from outside.
    let task = Task { await work() }
    watch.begin { task.cancel() }
    defer { watch.end() }
    return await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
  }

  private func watch(of channel: any Channel) async throws -> ClientWatch {
    let id = ObjectIdentifier(channel)
    if let known = watches.withLock({ $0[id] }) { return known }
    let watch = ClientWatch { [weak self] in
      _ = self?.watches.withLock { $0.removeValue(forKey: id) }
    }
    watches.withLock { $0[id] = watch }
    do {
      try await channel.pipeline.addHandler(watch, position: .first).get()
    } catch {
      watches.withLock { _ = $0.removeValue(forKey: id) }
      throw error
    }
    return watch
  }
}

/// Notices that the other end of a connection has stopped.
private final class ClientWatch: ChannelInboundHandler, Sendable {
  typealias InboundIn = ByteBuffer

  private struct State {
    var isGone = false
    var onGone: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())
  private let onRemoval: @Sendable () -> Void

  init(onRemoval: @escaping @Sendable () -> Void) {
    self.onRemoval = onRemoval
  }

  /// Calls `onGone` once when the client goes, at once when it has gone.
  func begin(_ onGone: @escaping @Sendable () -> Void) {
    let isGone = state.withLock { state in
      if !state.isGone { state.onGone = onGone }
      return state.isGone
    }
    if isGone { onGone() }
  }

  /// Forgets what `begin` asked for.
  func end() {
    state.withLock { $0.onGone = nil }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed = event { gone() }
    context.fireUserInboundEventTriggered(event)
  }

  func channelInactive(context: ChannelHandlerContext) {
    gone()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    gone()
    onRemoval()
  }

  private func gone() {
    let onGone = state.withLock { state in
      state.isGone = true
      let onGone = state.onGone
      state.onGone = nil
      return onGone
    }
    onGone?()
  }
}
