/// The head of a response.
struct ResponseHead: Sendable {
  var status: Int
  var headers: OutboundHeaders
}

/// What has arrived of one response, and whether more may come; the owner acts on it.
///
/// The first ending wins. What a streamed body received before its end, good or bad, can still be
/// read; only a cancelled reader gets no more.
struct ResponseState {
  /// How the body is read.
  enum Reading: Sendable, Equatable {
    /// The body is collected here and taken once, at the end.
    case whole
    /// The body is taken piece by piece; past this many bytes the sender is held up.
    case streamed(bufferBytesMax: Int)
  }

  /// What the receiver of bytes does next.
  enum Intake: Equatable {
    case stored
    /// The bytes were not stored; give the same bytes again after a `resume`.
    case pause
    /// The bytes were not stored; the response has ended, so give up.
    case abort
  }

  /// What the reader of a streamed body gets.
  enum Take: Equatable {
    case wait
    case chunk([UInt8], resume: Bool)
    case end
    case failure(OutboundHTTPError)
  }

  private enum Ending {
    case complete
    case failed(OutboundHTTPError)
  }

  private let reading: Reading
  private let bytesMax: Int
  private var head: ResponseHead?
  private var buffer: [UInt8] = []
  private var receivedBytes = 0
  private var isPaused = false
  private var ending: Ending?

  /// A response of which nothing has arrived; its body may have `bytesMax` bytes in all.
  init(reading: Reading, bytesMax: Int) {
    self.reading = reading
    self.bytesMax = bytesMax
  }

  var isEnded: Bool { ending != nil }

  /// Whether a waiting reader could have something to take.
  var isReadable: Bool { reading != .whole || isEnded }

  private var isCancelled: Bool {
    if case .failed(let error) = ending { error.kind == .cancelled } else { false }
  }

  // MARK: What the connection says

  /// Takes the head; no other head will follow.
  mutating func headArrived(_ head: ResponseHead) {
    if self.head == nil { self.head = head }
  }

  /// Takes a piece of the body.
  mutating func received(_ bytes: UnsafeRawBufferPointer) -> Intake {
    guard ending == nil else { return .abort }
    if case .streamed(let bufferBytesMax) = reading, !buffer.isEmpty,
      buffer.count + bytes.count > bufferBytesMax
    {
      isPaused = true
      return .pause
    }
    guard bytes.count <= bytesMax - receivedBytes else {
      ending = .failed(
        OutboundHTTPError(.tooLarge, "the response has more than \(bytesMax) bytes")
      )
      return .abort
    }
    receivedBytes += bytes.count
    buffer.append(contentsOf: bytes)
    return .stored
  }

  /// Ends the exchange; a nil error means that all of it arrived.
  ///
  /// Returns whether the exchange was still open.
  mutating func ended(_ error: OutboundHTTPError?) -> Bool {
    guard ending == nil else { return false }
    if let error {
      ending = .failed(error)
    } else if head == nil {
      ending = .failed(OutboundHTTPError(.failed, "the server sent no response"))
    } else {
      ending = .complete
    }
    return true
  }

  // MARK: What the reader asks

  /// The head, a failure, or nil for "not yet".
  func takeHead() -> Result<ResponseHead, OutboundHTTPError>? {
    if let head, !isCancelled { return .success(head) }
    if case .failed(let error) = ending { return .failure(error) }
    return nil
  }

  /// The next piece of a streamed body.
  mutating func takeChunk() -> Take {
    if !buffer.isEmpty, !isCancelled {
      let chunk = buffer
      let resume = isPaused
      buffer = []
      isPaused = false
      return .chunk(chunk, resume: resume)
    }
    return switch ending {
    case nil: .wait
    case .complete: .end
    case .failed(let error): .failure(error)
    }
  }

  /// The whole response, a failure, or nil for "not yet".
  mutating func takeWhole() -> Result<OutboundResponse, OutboundHTTPError>? {
    switch (ending, head) {
    case (nil, _): return nil
    case (.failed(let error), _): return .failure(error)
    case (.complete, let head?):
      let body = buffer
      buffer = []
      return .success(OutboundResponse(status: head.status, headers: head.headers, body: body))
    case (.complete, nil): return nil
    }
  }
}
