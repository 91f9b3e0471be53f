import NIOCore

extension HTTP1Connection {
  /// A request and the state of its response.
  final class Exchange {
    let head: RequestHead
    let number: UInt64
    let client = ClientWatch()
    /// Stops a response that is produced without a task.
    var stop: (@Sendable () -> Void)?
    /// The task that runs the responder.
    var task: HTTPExchanges.CountedTask?
    /// The task that writes a streamed body.
    var writing: HTTPExchanges.CountedTask?
    /// The framing of the response; nil until the response has begun.
    var framing: ResponseFraming?
    /// The number of bytes still missing from a body of announced length.
    var bytesLeft = 0
    /// A promise that completes when the last piece has been passed to the system.
    ///
    /// It fails if the client leaves.
    var unwritten: EventLoopPromise<Void>?
    /// The number of pieces that have been written.
    ///
    /// `isWriting` is true until the last piece has been passed to the system.
    var pieces: UInt64 = 0
    var isWriting = false
    /// The number of scheduled probes of the client.
    var probes = 0
    /// The memory hold for the request's body; nil while the body is short.
    var hold: TransferHold?
    /// The memory hold for what a streamed response keeps until its end.
    var responseHold: TransferHold?
    /// True if the body was abandoned because it arrived too slowly.
    var isBodyTooSlow = false
    var hasLeft = false
    var closes = false

    init(_ head: RequestHead, _ number: UInt64) {
      self.head = head
      self.number = number
    }

    /// Ends all work for a client that has disconnected, except work that must finish without it.
    func clientLeft(_ service: HTTPExchanges) {
      hasLeft = true
      stop?()
      stop = nil
      client.clientLeft()
      writing?.cancel()
      unwritten?.fail(CancellationError())
      guard let task else { return }
      if service.outlivesClient(Request(head: head.request)) {
        service.keep(task)
      } else {
        task.cancel()
      }
    }
  }
}
