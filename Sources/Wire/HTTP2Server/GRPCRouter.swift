import HTTPSupport
import Logging
import NIOCore
import StatusCodes

/// The state that a connection's streams share, and the selection of the call for each stream.
final class GRPCRouter: Sendable {
  let methods: [String: GRPCMethod]
  let services: Set<String>
  let rest: HTTP2Responder?
  let elsewhere: @Sendable (_ path: String) -> String?
  let limit: GRPCMessageLimit
  let headerBytesMax: Int
  let channel: any Channel
  let budget: TransferBudget?
  let remoteAddress: SocketAddress?
  let executor: EventLoopTaskExecutor
  let logger: Logger

  init(
    methods: [String: GRPCMethod],
    services: Set<String>,
    rest: HTTP2Responder?,
    elsewhere: @escaping @Sendable (_ path: String) -> String?,
    configuration: GRPCServer.Configuration,
    channel: any Channel,
    budget: TransferBudget?,
    logger: Logger
  ) {
    self.methods = methods
    self.services = services
    self.rest = rest
    self.elsewhere = elsewhere
    self.limit = GRPCMessageLimit(
      bytesMax: configuration.requestBytesMax,
      code: configuration.requestTooLargeCode
    )
    self.headerBytesMax = configuration.headerBytesMax
    self.channel = channel
    self.budget = budget
    self.remoteAddress = channel.remoteAddress
    self.executor = EventLoopTaskExecutor(channel.eventLoop)
    self.logger = logger
  }

  var loop: any EventLoop { channel.eventLoop }

  /// Creates the call for a stream's head; nil if the call was refused and the response sent.
  func open(_ stream: HTTP2Stream, _ head: HTTP2RequestHead) -> (any HTTP2Call)? {
    guard head.bytes <= headerBytesMax else {
      let error = StatusError(
        .resourceExhausted,
        "The header fields of the call exceed \(headerBytesMax) bytes."
      )
      return refuse(stream, GRPCRequestHead.isGRPC(head.contentType) ? .status(error) : .http(431))
    }
    if let rest, !GRPCRequestHead.isGRPC(head.contentType), !isMethod(head.path) {
      return HTTPCall(head, stream: stream, server: self, responder: rest)
    }
    do {
      let accepted = try GRPCRequestHead(head)
      guard let method = methods[accepted.path] else {
        return refuse(stream, .status(unknownMethod(accepted.path)))
      }
      return GRPCCall(
        accepted,
        headers: head.headers,
        method: method,
        stream: stream,
        server: self
      )
    } catch {
      return refuse(stream, error)
    }
  }

  /// Returns true if a path names a method, known or unknown, of a known gRPC service.
  private func isMethod(_ path: String) -> Bool {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count == 3 && services.contains(String(parts[1]))
  }

  private func unknownMethod(_ path: String) -> StatusError {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].isEmpty, services.contains(String(parts[1])) else {
      let hint = elsewhere(path).map { " " + $0 } ?? ""
      return StatusError(.unimplemented, "No service answers \(path).\(hint)")
    }
    return StatusError(.unimplemented, "The service \(parts[1]) has no method \(parts[2]).")
  }

  private func refuse(_ stream: HTTP2Stream, _ refusal: GRPCRequestHead.RefusalError) -> GRPCCall? {
    switch refusal {
    case .status(let error):
      stream.end(.trailers(GRPCTrailers.make(error, trailersOnly: true)))
    case .compression(let error):
      var trailers = GRPCTrailers.make(error, trailersOnly: true)
      trailers.writeHeaderField("grpc-accept-encoding", GRPCRequestHead.encodings)
      stream.end(.trailers(trailers))
    case .http(let status):
      var head = ByteBuffer()
      head.writeStatusField(status)
      head.writeHeaderField("content-length", "0")
      stream.end(.trailers(head))
    }
    stream.flush()
    return nil
  }
}

/// An executor that runs tasks on an event loop, together with its other work.
final class EventLoopTaskExecutor: TaskExecutor {
  private let loop: any EventLoop

  init(_ loop: any EventLoop) {
    self.loop = loop
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    loop.execute {
      job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }
}
