import Synchronization

/// One request in progress, shared by the task that reads it and the driver of its connection.
final class Transfer: Sendable {
  let request: OutboundRequest
  let deadline: ContinuousClock.Instant?
  private let shared: Mutex<Shared>

  private struct Shared {
    var response: ResponseState
    /// The number of changes that the reader could act on.
    ///
    /// A reader compares it to notice changes between its check of the state and its wait.
    var news = 0
    var waiter: CheckedContinuation<Void, Never>?
  }

  /// Creates a request that has not been submitted.
  init(_ request: OutboundRequest, reading: ResponseState.Reading) {
    self.request = request
    deadline = request.timeout.map { ContinuousClock.now + $0 }
    shared = Mutex(
      Shared(response: ResponseState(reading: reading, bytesMax: request.responseBytesMax))
    )
  }

  var isEnded: Bool { shared.withLock { $0.response.isEnded } }

  /// True while the sender has to wait for the reader.
  var isPaused: Bool { shared.withLock { $0.response.isPaused } }

  //MARK: Calls of the driver

  func headArrived(_ head: ResponseHead) {
    signal { $0.headArrived(head) }
  }

  func received(_ bytes: UnsafeRawBufferPointer) -> ResponseState.Intake {
    signal { $0.received(bytes) }
  }

  /// Ends the response; returns false if it had already ended.
  @discardableResult
  func ended(_ error: OutboundHTTPError?) -> Bool {
    signal { $0.ended(error) }
  }

  private func signal<R>(_ change: (inout ResponseState) -> R) -> R {
    let (result, waiter) = shared.withLock { shared -> (R, CheckedContinuation<Void, Never>?) in
      let result = change(&shared.response)
      guard shared.response.isReadable else { return (result, nil) }
      shared.news += 1
      defer { shared.waiter = nil }
      return (result, shared.waiter)
    }
    waiter?.resume()
    return result
  }

  //MARK: Calls of the reading task

  func whole() async throws(OutboundHTTPError) -> OutboundResponse {
    while true {
      let (result, news) = look { $0.takeWhole() }
      if let result { return try result.get() }
      await newsAfter(news)
    }
  }

  func head() async throws(OutboundHTTPError) -> ResponseHead {
    while true {
      let (result, news) = look { $0.takeHead() }
      if let result { return try result.get() }
      await newsAfter(news)
    }
  }

  /// Returns the next chunk and whether the sender must be resumed; nil at the end.
  func chunk() async throws(OutboundHTTPError) -> (bytes: [UInt8], resume: Bool)? {
    while true {
      let (take, news) = look { $0.takeChunk() }
      switch take {
      case .chunk(let bytes, let resume): return (bytes, resume)
      case .end: return nil
      case .failure(let error): throw error
      case .wait: await newsAfter(news)
      }
    }
  }

  private func look<R>(_ take: (inout ResponseState) -> R) -> (R, news: Int) {
    shared.withLock { (take(&$0.response), $0.news) }
  }

  private func newsAfter(_ news: Int) async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isNews = shared.withLock { shared in
        if shared.news != news { return true }
        shared.waiter = continuation
        return false
      }
      if isNews { continuation.resume() }
    }
  }
}
