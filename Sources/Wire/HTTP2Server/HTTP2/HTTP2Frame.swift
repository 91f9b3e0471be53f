import NIOCore

/// A complete and well-formed frame from a client on an HTTP/2 connection (RFC 9113, 6).
enum HTTP2Frame: Equatable {
  /// Data; `windowBytes` is the size for flow control, including padding.
  case data(stream: UInt32, bytes: ByteBuffer, windowBytes: Int, end: Bool)
  /// A header block with all its continuations, still compressed.
  case headers(stream: UInt32, block: ByteBuffer, end: Bool)
  case reset(stream: UInt32)
  case settings([HTTP2Setting])
  case settingsAcknowledged
  case ping(UInt64)
  case pingAcknowledged(UInt64)
  case goAway
  case windowUpdate(stream: UInt32, increment: Int)
  /// A frame that has no effect on this server: a priority frame or an unknown type.
  case ignored
}

/// A setting of a peer; unknown ids are kept.
struct HTTP2Setting: Equatable {
  var id: UInt16
  var value: UInt32

  static let headerTableSize: UInt16 = 1
  static let enablePush: UInt16 = 2
  static let maxConcurrentStreams: UInt16 = 3
  static let initialWindowSize: UInt16 = 4
  static let maxFrameSize: UInt16 = 5
  static let maxHeaderListSize: UInt16 = 6
}

/// The error codes of RFC 9113, section 7.
enum HTTP2ErrorCode: UInt32 {
  case noError = 0
  case protocolError = 1
  case internalError = 2
  case flowControlError = 3
  case streamClosed = 5
  case frameSizeError = 6
  case refusedStream = 7
  case cancel = 8
  case compressionError = 9
  case enhanceYourCalm = 11
}

/// An error that ends the connection and is reported to the client with GOAWAY.
struct HTTP2ConnectionError: Error, Equatable {
  var code: HTTP2ErrorCode
  /// The reason, which is sent to the client for debugging.
  var reason: String

  init(_ code: HTTP2ErrorCode, _ reason: String) {
    self.code = code
    self.reason = reason
  }
}

/// The sizes that RFC 9113 specifies.
enum HTTP2Size {
  static let frameHeader = 9
  /// The frame size that every peer must accept; neither side requests a different limit here.
  static let frameMax = 16_384
  /// The size of every window before the first setting or window update.
  static let windowDefault = 65_535
  static let windowMax = Int(Int32.max)
}

/// The frame types of RFC 9113.
enum HTTP2FrameType {
  static let data: UInt8 = 0
  static let headers: UInt8 = 1
  static let priority: UInt8 = 2
  static let reset: UInt8 = 3
  static let settings: UInt8 = 4
  static let pushPromise: UInt8 = 5
  static let ping: UInt8 = 6
  static let goAway: UInt8 = 7
  static let windowUpdate: UInt8 = 8
  static let continuation: UInt8 = 9
}

/// The frame flags of RFC 9113.
enum HTTP2Flag {
  static let endStream: UInt8 = 0x1
  static let acknowledgement: UInt8 = 0x1
  static let endHeaders: UInt8 = 0x4
  static let padded: UInt8 = 0x8
  static let priority: UInt8 = 0x20
}
