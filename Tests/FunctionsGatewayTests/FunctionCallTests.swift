import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Invocation
import Logging
import Manifests
import NIOCore
import NIOEmbedded
import Synchronization
import Testing
import TestSupport

@testable import FunctionsGateway

@Suite("Calls of functions")
struct FunctionCallTests {
  @Test("A function sees its path without the prefix, its query and body, and an id")
  func passesOn() async throws {
    let invoker = InvokerStub { request in
      .success(request.reply(#"{"result":1}"#))
    }
    let response = await service(invoker).respond(
      to: .post("/demo/us-central1/add/more/a%2Fb?x=1&y=%20", #"{"data":1}"#),
      .embedded
    )

    let request = try #require(invoker.requests.first)
    #expect(request.function == "add")
    #expect(request.head.path == "/more/a%2Fb?x=1&y=%20")
    #expect(String(buffer: request.wholeBody) == #"{"data":1}"#)
    #expect(request.id == "id")
    #expect(response.status == .ok)
    #expect(try await response.text == #"{"result":1}"#)
  }

  @Test("Headers by which a client would pass for the server do not reach the function")
  func forgedHeaders() async throws {
    let invoker = InvokerStub { .success($0.reply("ok")) }
    var request = Request.post("/demo/us-central1/add")
    for name in ["X-Hearth-Cause", "x-hearth-attempt", "X-CloudTasks-TaskName", "ce-id"] {
      request = request.with(try #require(HTTPField.Name(name)), "1")
    }
    let own = try #require(HTTPField.Name("x-own"))
    request = request.with(own, "kept")
    _ = await service(invoker).respond(to: request, .embedded)

    let seen = try #require(invoker.requests.first).head.headerFields
    #expect(seen.map(\.name.canonicalName).filter { $0 != "traceparent" } == ["x-own"])
  }

  @Test("Whatever a function answers is passed on, errors too")
  func passesErrors() async throws {
    let invoker = InvokerStub { request in
      var reply = request.reply("no")
      reply.head.status = .teapot
      reply.head.headerFields[.cacheControl] = "no-store"
      return .success(reply)
    }
    let response = await service(invoker).respond(to: .post("/demo/us-central1/add"), .embedded)

    #expect(response.status == .teapot)
    #expect(response.headers[.cacheControl] == "no-store")
    #expect(try await response.text == "no")
  }

  @Test("A streamed reply is passed on piece by piece")
  func streams() async throws {
    let invoker = InvokerStub { _ in
      let (stream, continuation) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
      continuation.yield(ByteBuffer(string: "a"))
      continuation.yield(ByteBuffer(string: "b"))
      continuation.finish()
      return .success(Response(head: HTTPResponse(status: .ok), body: .stream(stream)))
    }
    let response = await service(invoker).respond(to: .post("/demo/us-central1/add"), .embedded)

    guard case .stream(let pieces) = response.body else {
      Issue.record("The reply has become whole.")
      return
    }
    var passed: [String] = []
    for try await piece in pieces { passed.append(String(buffer: piece)) }
    #expect(passed == ["a", "b"])
  }

  @Test(
    "A wrong address is 404 and says what is right",
    arguments: [
      (
        "/demo/us-central1/nope",
        "There is no function named nope. Functions: us-central1/add, us-central1/site."
      ),
      ("/other/us-central1/add", "This server runs project demo, not other."),
      ("/demo/europe-west1/add", "The function add is in region us-central1, not europe-west1."),
      ("/demo/us-central1/fires", "is triggered by events and cannot be called"),
      ("/demo/us-central1", "A function is called at /demo/REGION/NAME."),
      ("/", "A function is called at /demo/REGION/NAME."),
    ]
  )
  func notFound(path: String, message: String) async throws {
    let invoker = InvokerStub { _ in .failure(InvocationError(.failed, "unexpected")) }
    var request = Request.post(path)
    request = request.with(.origin, "https://app.example")
    let response = await service(invoker).respond(to: request, .embedded)

    #expect(response.status == .notFound)
    #expect(try await response.text.contains(message))
    #expect(try await response.text.contains(#""status":"NOT_FOUND""#))
    #expect(response.headers[.accessControlAllowOrigin] == "https://app.example")
    #expect(invoker.requests.isEmpty)
  }

  @Test("A body beyond the bound is 413, whether announced or not", arguments: [true, false])
  func tooLarge(isAnnounced: Bool) async throws {
    let invoker = InvokerStub { _ in .failure(InvocationError(.failed, "unexpected")) }
    let bytes = ByteBuffer(repeating: 0, count: FunctionLimits.bodyBytesMax + 1)
    var request = Request.post("/demo/us-central1/add", bytes)
    if isAnnounced { request = request.with(.contentLength, "\(bytes.readableBytes)") }
    let response = await service(invoker).respond(to: request, .embedded)

    #expect(response.status.code == 413)
    #expect(try await response.text.contains(#""status":"INVALID_ARGUMENT""#))
    #expect(response.headers[.connection] == "close")
    #expect(invoker.requests.isEmpty)
  }

  @Test("A body at the bound is passed on")
  func large() async throws {
    let invoker = InvokerStub { .success($0.reply("ok")) }
    let bytes = ByteBuffer(repeating: 0, count: FunctionLimits.bodyBytesMax)
    let request = Request.post("/demo/us-central1/add", bytes)

    #expect(await service(invoker).respond(to: request, .embedded).status == .ok)
  }

  @Test(
    "A failed invocation becomes a callable's error without any output of the worker",
    arguments: [
      (InvocationError.Kind.overloaded, 429, "RESOURCE_EXHAUSTED"),
      (.cannotStart, 503, "UNAVAILABLE"),
      (.placesTaken, 503, "UNAVAILABLE"),
      (.drained, 503, "UNAVAILABLE"),
      (.unserved, 503, "UNAVAILABLE"),
      (.timedOut, 504, "DEADLINE_EXCEEDED"),
      (.crashed, 500, "INTERNAL"),
      (.failed, 500, "INTERNAL"),
      (.notFound, 404, "NOT_FOUND"),
    ]
  )
  func failures(kind: InvocationError.Kind, status: Int, name: String) async throws {
    let invoker = InvokerStub { _ in .failure(InvocationError(kind, "password=1")) }
    let request = Request.post("/demo/us-central1/add").with(.origin, "https://app.example")
    let response = await service(invoker).respond(to: request, .embedded)
    let text = try await response.text

    #expect(response.status.code == status)
    #expect(text.contains(#""status":"\#(name)""#))
    // Errors of these kinds come from the pool itself and contain nothing from a worker.
    #expect([.overloaded, .placesTaken, .unserved].contains(kind) == text.contains("password"))
    #expect(text.contains("(id)") || ![.crashed, .timedOut, .failed].contains(kind))
    #expect(response.headers[.accessControlAllowOrigin] == "https://app.example")
  }

  @Test("An HTTP function is not invoked before its body is whole or much of it has come")
  func halfBodies() async throws {
    let invocations = Mutex(0)
    let invoker = InvokerStub { request in
      invocations.withLock { $0 += 1 }
      if case .whole = request.body { return .success(request.reply("whole")) }
      return .success(request.reply("streamed"))
    }
    let (reads, read) = AsyncStream.makeStream(of: Int.self)
    for isLong in [false, true] {
      let (pieces, piece) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
      piece.yield(ByteBuffer(repeating: 0, count: 1000))
      let count = Mutex(0)
      let watched = AsyncThrowingStream<ByteBuffer, any Error> {
        let number = count.withLock { count in
          count += 1
          return count
        }
        read.yield(number)
        return try await pieces.nextElement()
      }
      let request = Request(
        head: Request.post("/demo/us-central1/site").head,
        body: .stream(watched)
      ).with(.contentLength, "\(isLong ? 1000 + (256 << 10) : 1000)")
      async let response = service(invoker).respond(to: request, .embedded)
      for await number in reads where number == 2 { break }
      #expect(invocations.withLock { $0 } == (isLong ? 1 : 0))
      if isLong { piece.yield(ByteBuffer(repeating: 0, count: 256 << 10)) } else { piece.finish() }
      #expect(try await response.text == (isLong ? "streamed" : "whole"))
      piece.finish()
    }
  }

  @Test(
    "A chunked body reaches its function as it comes, because the client may wait for a response"
  )
  func chunkedBody() async throws {
    let invoker = InvokerStub { request in
      guard case .stream(let pieces) = request.body else { return .success(request.reply("whole")) }
      let first = try? await pieces.nextElement()
      return .success(request.reply("read \(first?.readableBytes ?? 0)"))
    }
    let (pieces, piece) = AsyncThrowingStream.makeStream(
      of: ByteBuffer.self,
      throwing: (any Error).self
    )
    piece.yield(ByteBuffer(repeating: 0, count: 1000))
    let request = Request(head: Request.post("/demo/us-central1/site").head, body: .stream(pieces))
      .with(.transferEncoding, "chunked")

    #expect(try await service(invoker).respond(to: request, .embedded).text == "read 1000")
    piece.finish()
  }

  @Test("When the client leaves, the invocation is cancelled")
  func disconnects() async throws {
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    let invoker = InvokerStub { _ in
      begin.yield()
      await withTaskCancellationHandler {
        for await _ in AsyncStream<Never>.makeStream().stream {}
      } onCancel: {
      }
      return .failure(InvocationError(.drained, "cancelled"))
    }
    let client = ClientWatch()
    let gateway = service(invoker)
    async let response = gateway.respond(
      to: .post("/demo/us-central1/add"),
      HTTPContext(channel: NIOAsyncTestingChannel(), client: client)
    )
    for await _ in begun { break }
    client.clientLeft()

    #expect(await response.status.code == 503)
  }

  @Test("A client that reads a stream receives every failure as an event, with status 200")
  func streamedFailures() async throws {
    let invoker = InvokerStub { _ in .failure(InvocationError(.overloaded, "full")) }
    for (path, status) in [
      ("/demo/us-central1/add", "RESOURCE_EXHAUSTED"), ("/demo/us-central1/nope", "NOT_FOUND"),
    ] {
      let request = Request.post(path).with(.accept, "text/event-stream")
        .with(.origin, "https://app.example")
      let response = await service(invoker).respond(to: request, .embedded)
      let text = try await response.text

      #expect(response.status == .ok)
      #expect(response.headers[.contentType] == "text/event-stream")
      #expect(response.headers[.accessControlAllowOrigin] == "https://app.example")
      #expect(text.hasPrefix("data: {\"error\":{\"message\":"))
      #expect(text.hasSuffix("\"status\":\"\(status)\"}}\n\n"))
    }
  }

  @Test(
    "A stream that breaks off ends with an error event, and no half of another before it",
    arguments: [
      (InvocationError.Kind.timedOut, "DEADLINE_EXCEEDED"), (.crashed, "INTERNAL"),
      (.drained, "UNAVAILABLE"),
    ]
  )
  func brokenStream(kind: InvocationError.Kind, status: String) async throws {
    let invoker = InvokerStub { _ in
      let (stream, continuation) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
      continuation.yield(ByteBuffer(string: "data: {\"message\":1}\n"))
      continuation.yield(ByteBuffer(string: "\ndata: {\"mess"))
      continuation.finish(throwing: InvocationError(kind, "password=1"))
      let head = HTTPResponse(status: .ok, headerFields: [.contentType: "text/event-stream"])
      return .success(Response(head: head, body: .stream(stream)))
    }
    let request = Request.post("/demo/us-central1/add").with(.accept, "text/event-stream")
    let text = try await service(invoker).respond(to: request, .embedded).text

    #expect(text.hasPrefix("data: {\"message\":1}\n\ndata: {\"error\":{"))
    #expect(text.hasSuffix("\"status\":\"\(status)\"}}\n\n"))
    #expect(!text.contains("password"))
  }

  @Test("An HTTP function's stream that breaks off is cut, and a crash before it is marked")
  func brokenHTTP() async throws {
    let cut = InvokerStub { _ in
      let (stream, continuation) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
      continuation.yield(ByteBuffer(string: "half"))
      continuation.finish(throwing: InvocationError(.crashed, "x"))
      return .success(Response(head: HTTPResponse(status: .ok), body: .stream(stream)))
    }
    let response = await service(cut).respond(to: .post("/demo/us-central1/site"), .embedded)
    await #expect(throws: InvocationError.self) { _ = try await response.text }
    let crash = InvokerStub { _ in .failure(InvocationError(.crashed, "x")) }
    let request = Request.post("/demo/us-central1/site").with(.accept, "text/event-stream")
    let crashed = await service(crash).respond(to: request, .embedded)

    #expect(crashed.status == .internalServerError)
    #expect(crashed.headers[fieldName("x-google-status")] == "crash")
  }

  @Test("An HTTP function's large body is handed on while it arrives, small ones whole")
  func uploads() async throws {
    let invoker = InvokerStub { request in
      switch request.body {
      case .whole(let body): return .success(request.reply("whole \(body.readableBytes)"))
      case .stream(let pieces):
        var bytes = 0
        do {
          for try await piece in pieces { bytes += piece.readableBytes }
        } catch {
          return .failure(InvocationError(.failed, "\(error)"))
        }
        return .success(request.reply("streamed \(bytes)"))
      }
    }
    func reply(_ bytes: Int, isAnnounced: Bool) async throws -> (Int, String) {
      let body = ByteBuffer(repeating: 0, count: bytes)
      var request = Request.post("/demo/us-central1/site", body)
      if bytes > 1 << 16 {
        let (pieces, continuation) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
        continuation.yield(body)
        continuation.finish()
        request = Request(head: request.head, body: .stream(pieces))
      }
      request =
        isAnnounced
        ? request.with(.contentLength, "\(bytes)") : request.with(.transferEncoding, "chunked")
      let response = await service(invoker).respond(to: request, .embedded)
      return (response.status.code, try await response.text)
    }

    #expect(try await reply(10, isAnnounced: true) == (200, "whole 10"))
    #expect(try await reply(1 << 20, isAnnounced: true) == (200, "streamed 1048576"))
    let most = FunctionLimits.uploadBytesMax
    #expect(try await reply(most, isAnnounced: false) == (200, "streamed \(most)"))
    for isAnnounced in [true, false] {
      let (status, text) = try await reply(most + 1, isAnnounced: isAnnounced)
      #expect(status == 413)
      #expect(text.contains("longer than \(most) bytes"))
    }
  }

  @Test("A missing function is a 503 with the reason while a deployment is not served")
  func unserved() async throws {
    let service = service(InvokerStub { .success($0.reply("ok")) }, unserved: "Still starting.")
    for path in ["/demo/us-central1/nope", "/functions/projects/demo/triggers/us-central1-nope"] {
      let response = await service.respond(to: .post(path), .embedded)

      #expect(response.status.code == 503)
      #expect(try await response.text.contains("Still starting."))
    }
    let known = await service.respond(to: .post("/demo/us-central1/add"), .embedded)
    #expect(known.status == .ok)
  }

  private func service(_ invoker: InvokerStub, unserved: String? = nil) -> FunctionsService {
    var fires = FunctionEndpoint(entryPoint: "fires")
    fires.eventTrigger = FunctionEndpoint.EventTrigger(eventType: "t", eventFilters: [:])
    var add = FunctionEndpoint(entryPoint: "add")
    add.callableTrigger = FunctionEndpoint.CallableTrigger()
    var site = FunctionEndpoint(entryPoint: "site")
    site.httpsTrigger = FunctionEndpoint.HTTPSTrigger()
    let functions = ["add": add, "fires": fires, "site": site]
    return FunctionsService(
      project: "demo",
      functions: { functions },
      unserved: { unserved },
      invoker: invoker,
      isEnabled: { true },
      publish: { _ in },
      makeID: { "id" },
      logger: .silent
    )
  }
}

@Suite("Function target")
struct FunctionTargetTests {
  @Test(
    "A target is taken apart without touching what the function sees",
    arguments: [
      ("/p/r/n", "n", "/"),
      ("/p/r/n/", "n", "/"),
      ("/p/r/n?q=/a/b", "n", "/?q=/a/b"),
      ("/p/r/n/a//b%20?x", "n", "/a//b%20?x"),
      ("/p/r/na%6De", "name", "/"),
      ("/p/r", "", "/"),
      ("/p/r/%zz", "", "/"),
      ("", "", "/"),
    ]
  )
  func parts(target: String, name: String, path: String) {
    let parsed = FunctionTarget(target)

    #expect(parsed.name == name)
    #expect(parsed.path == path)
    #expect(name.isEmpty || (parsed.project == "p" && parsed.region == "r"))
  }
}

/// An invoker whose replies come from a closure.
private final class InvokerStub: FunctionInvoker {
  private let answer: @Sendable (InvocationRequest) async -> Result<Response, InvocationError>
  private let received = Mutex<[InvocationRequest]>([])

  init(
    answer:
      @escaping @Sendable (InvocationRequest) async -> Result<
        Response, InvocationError
      >
  ) {
    self.answer = answer
  }

  var requests: [InvocationRequest] { received.withLock { $0 } }

  func invoke(_ request: InvocationRequest) async throws -> Response {
    received.withLock { $0.append(request) }
    return try await answer(request).get()
  }
}

extension InvocationRequest {
  fileprivate func reply(_ text: String) -> Response {
    Response(head: HTTPResponse(status: .ok), body: .whole(ByteBuffer(string: text)))
  }
}

extension HTTPResponse.Status {
  fileprivate static let teapot = HTTPResponse.Status(code: 418)
}

extension HTTPContext {
  fileprivate static var embedded: HTTPContext { HTTPContext(channel: NIOAsyncTestingChannel()) }
}

extension Request {
  fileprivate static func post(_ path: String, _ body: String = "{}") -> Request {
    post(path, ByteBuffer(string: body))
  }

  fileprivate static func post(_ path: String, _ body: ByteBuffer) -> Request {
    Request(
      head: HTTPRequest(method: .post, scheme: "http", authority: "localhost", path: path),
      body: .whole(body)
    )
  }

  fileprivate func with(_ name: HTTPField.Name, _ value: String) -> Request {
    var head = head
    head.headerFields[name] = value
    return Request(head: head, body: body)
  }
}

extension Response {
  fileprivate var text: String {
    get async throws {
      String(buffer: try await body.collect(upTo: 1 << 20))
    }
  }
}

@Suite("Events of a stream")
struct EventFramesTests {
  @Test("However a stream is cut into pieces, only whole events pass", arguments: 1...12)
  func pieces(length: Int) {
    let text = "data: 1\n\ndata: {\"a\":\"b\"}\n\ndata: 3\n\ndata: ha"
    var frames = EventFrames()
    var passed = ""
    var rest = ByteBuffer(string: text)
    while rest.readableBytes > 0 {
      guard let piece = rest.readSlice(length: min(length, rest.readableBytes)) else { break }
      guard let whole = frames.append(piece) else { continue }
      passed += String(buffer: whole)
      #expect(passed.hasSuffix("\n\n"))
    }

    #expect(passed == "data: 1\n\ndata: {\"a\":\"b\"}\n\ndata: 3\n\n")
    #expect(frames.rest.map { String(buffer: $0) } == "data: ha")
    #expect(frames.canEnd)
  }

  @Test("An event beyond the bound passes in pieces, and nothing may follow until it has ended")
  func bound() {
    var frames = EventFrames()

    #expect(frames.append(ByteBuffer(repeating: 65, count: EventFrames.heldBytesMax)) == nil)
    #expect(frames.append(ByteBuffer(string: "b"))?.readableBytes == EventFrames.heldBytesMax + 1)
    #expect(!frames.canEnd)
    #expect(frames.append(ByteBuffer(string: "c\n\n"))?.readableBytes == 3)
    #expect(frames.canEnd)
  }
}
