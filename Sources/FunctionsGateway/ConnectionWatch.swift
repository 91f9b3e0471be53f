import NIOCore
import Synchronization

/// Tells a client's request that the client has gone away.
///
/// Hummingbird's server keeps a connection open for writing when the client closes its side, and
/// reads no further while a request runs. So a handler of our own looks out for the end of input.
final class ConnectionWatch: Sendable {
  private struct State {
    var isGone = false
    var cancel: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// Runs `operation`, and cancels it when the client goes away.
  func whileConnected<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    // Owned by this call, which awaits its end; ended by it, by the caller or by the client.
    let task = Task { try await operation() }
    let isGone = state.withLock { state in
      state.cancel = { task.cancel() }
      return state.isGone
    }
    if isGone { task.cancel() }
    defer { state.withLock { $0.cancel = nil } }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  fileprivate func clientLeft() {
    let cancel = state.withLock { state in
      state.isGone = true
      return state.cancel
    }
    cancel?()
  }
}

/// The watches of all open connections that have carried a request.
final class ConnectionWatches: Sendable {
  private let watches = Mutex<[ObjectIdentifier: ConnectionWatch]>([:])

  /// The watch of a connection.
  func watch(_ channel: any Channel) -> ConnectionWatch {
    let id = ObjectIdentifier(channel)
    let (watch, isNew) = watches.withLock { watches in
      if let watch = watches[id] { return (watch, false) }
      let watch = ConnectionWatch()
      watches[id] = watch
      return (watch, true)
    }
    if isNew { install(watch, id, on: channel) }
    return watch
  }

  private func install(_ watch: ConnectionWatch, _ id: ObjectIdentifier, on channel: any Channel) {
    channel.eventLoop.execute {
      // Until then the channel's identity cannot be another's, because this holds it.
      channel.closeFuture.whenComplete { _ in
        watch.clientLeft()
        _ = self.watches.withLock { $0.removeValue(forKey: id) }
        withExtendedLifetime(channel) {}
      }
      do {
        try channel.pipeline.syncOperations.addHandler(EndOfInput(watch), position: .first)
      } catch {
        // The channel has closed in the meantime, which the future tells too.
        watch.clientLeft()
      }
    }
  }

  private final class EndOfInput: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    private let watch: ConnectionWatch

    init(_ watch: ConnectionWatch) {
      self.watch = watch
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if case .some(.inputClosed) = event as? ChannelEvent { watch.clientLeft() }
      context.fireUserInboundEventTriggered(event)
    }
  }
}
