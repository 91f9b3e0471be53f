struct ResponseHead: Sendable {
  var status: Int
  var headers: OutboundHeaders
}

/// The state of one response, with the received bytes and the way in which it ended.
///
/// It only records changes, and its owner acts on them. The first ending counts. Bytes of a
/// streamed body that arrived before its end can still be read, even after a failure. A cancelled
/// reader gets no more bytes.
struct ResponseState {
  /// The way in which the body is read.
  enum Reading: Sendable, Equatable {
    /// The body is collected in memory and taken once, at its end.
    case whole
    /// The body is taken in chunks. Beyond this number of bytes the sender has to wait.
    case streamed(bufferBytesMax: Int)
    /// The body is taken in chunks, from a sender that cannot offer the same bytes again.
    ///
    /// From `holdBytes` unread bytes on, the sender should wait. Beyond `bufferBytesMax`, the
    /// response fails.
    case pushed(holdBytes: Int, bufferBytesMax: Int)
  }

  /// The next step for the receiver of bytes.
  enum Intake: Equatable {
    case stored
    /// The bytes were not stored. Offer the same bytes again after a `resume`.
    case pause
    /// The bytes were stored. The sender should wait for a `resume`, but may send more.
    case hold
    /// The bytes were not stored because the response has ended. Abort the transfer.
    case abort
  }

  /// The result for the reader of a streamed body.
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
  /// True while the sender has to wait for the reader.
  private(set) var isPaused = false
  private var ending: Ending?

  /// Creates the state before anything has arrived.
  ///
  /// `bytesMax` limits the total size of the body.
  init(reading: Reading, bytesMax: Int) {
    self.reading = reading
    self.bytesMax = bytesMax
  }

  var isEnded: Bool { ending != nil }

  /// True if the state can have something for a waiting reader.
  var isReadable: Bool { reading != .whole || isEnded }

  private var isCancelled: Bool {
    if case .failed(let error) = ending { error.kind == .cancelled } else { false }
  }

  //MARK: Events of the connection

  /// Stores the final head.
  ///
  /// Only the first call has an effect.
  mutating func headArrived(_ head: ResponseHead) {
    if self.head == nil { self.head = head }
  }

  /// Stores a piece of the body.
  mutating func received(_ bytes: UnsafeRawBufferPointer) -> Intake {
    guard ending == nil else { return .abort }
    switch reading {
    case .streamed(let bufferBytesMax) where isFull(for: bytes, bufferBytesMax):
      isPaused = true
      return .pause
    case .pushed(_, let bufferBytesMax) where isFull(for: bytes, bufferBytesMax):
      return refuse("the response has more than \(bufferBytesMax) bytes that wait for the reader")
    default: break
    }
    guard bytes.count <= bytesMax - receivedBytes else {
      return refuse("the response has more than \(bytesMax) bytes")
    }
    receivedBytes += bytes.count
    buffer.append(contentsOf: bytes)
    guard case .pushed(let holdBytes, _) = reading, buffer.count >= holdBytes, !isPaused else {
      return .stored
    }
    isPaused = true
    return .hold
  }

  /// Returns true if a piece would exceed the buffer; a single piece of any size fits.
  private func isFull(for bytes: UnsafeRawBufferPointer, _ bufferBytesMax: Int) -> Bool {
    !buffer.isEmpty && buffer.count + bytes.count > bufferBytesMax
  }

  private mutating func refuse(_ reason: String) -> Intake {
    ending = .failed(OutboundHTTPError(.tooLarge, reason))
    return .abort
  }

  /// Ends the response.
  ///
  /// A nil error means that all of it arrived.
  ///
  /// Returns true if the response had not ended before.
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

  //MARK: Reading

  /// Returns the head or a failure; nil if neither has arrived.
  func takeHead() -> Result<ResponseHead, OutboundHTTPError>? {
    if let head, !isCancelled { return .success(head) }
    if case .failed(let error) = ending { return .failure(error) }
    return nil
  }

  /// Takes the next chunk of a streamed body.
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

  /// Takes the complete response or a failure; nil if it has not ended.
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
