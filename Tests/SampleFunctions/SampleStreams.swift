import FunctionsRuntime

/// Streaming callables and HTTP functions that behave and misbehave as their request tells them.
struct SampleStreams: Sendable {
  struct Spelling: Codable, Sendable {
    var text: String
    /// What happens after the last chunk: `fail`, `throw` or `crash`; a result by default.
    var ending: String?
  }

  struct SpellingFailed: Error {}

  /// Sends the characters of a text, then ends as the request says.
  var spell: OnStreamingCall<Spelling, Int, String> {
    .init("spell") { request, stream in
      for character in request.data.text { try await stream.send(String(character)) }
      switch request.data.ending {
      case "fail": throw CallableError(.failedPrecondition, "failed as asked", details: [1])
      case "throw": throw SpellingFailed()
      case "crash": fatalError("crashed as asked")
      default: break
      }
      return request.data.text.count
    }
  }

  /// Sends a text as one chunk and never ends by itself.
  var stall: OnStreamingCall<String, Bool, String> {
    .init("stall", options: .init(timeout: .seconds(5))) {
      request,
      stream in
      try await stream.send(request.data)
      do {
        try await Task.sleep(for: .seconds(3600))
      } catch {
        request.logger.notice("Cancelled \(request.data)")
      }
      return false
    }
  }

  struct Numbers: Codable, Sendable, Equatable {
    var int: Int
    var unsigned: UInt64
    var double: Double
  }

  /// Sends what it was sent as a chunk, and answers with it.
  var numbers: OnStreamingCall<Numbers, Numbers, Numbers> {
    .init("numbers") { request, stream in
      try await stream.send(request.data)
      return request.data
    }
  }

  /// Answers with the app that calls.
  var whichApp: OnCall<FirestoreValue, String?> {
    .init("whichApp", options: .init(enforceAppCheck: true, consumeAppCheckToken: true)) {
      request in
      request.app.map { "\($0.appID) \($0.alreadyConsumed == true)" }
    }
  }

  /// One at a time, and only while its gate is closed: the others wait for their turn.
  var turnstile: OnCall<String, Bool> {
    .init("turnstile", options: .init(timeout: .seconds(30), concurrency: 1, maxInstances: 1)) {
      request in
      request.logger.info("Begun \(request.data)")
      guard request.data == "hold" else { return true }
      try await Task.sleep(for: .seconds(3600))
      return false
    }
  }

  /// Tells what it was sent: method, path, query, headers that matter, and the body's length.
  var inspect: OnRequest {
    .init("inspect") { request in
      var bytes = 0
      for try await piece in request.body { bytes += piece.count }
      return try .json(
        Inspection(
          method: request.method.rawValue,
          path: request.path,
          query: request.query,
          host: request.host,
          traceID: request.traceID,
          bytes: bytes
        )
      )
    }
  }

  struct Inspection: Codable {
    var method: String
    var path: String
    var query: String?
    var host: String?
    var traceID: String?
    var bytes: Int
  }

  /// Sends each piece of the body back as it comes.
  var echoBody: OnRequest {
    .init("echoBody", options: .init(cors: .only(["https://app.example"]))) { request in
      .stream(contentType: "application/octet-stream") { writer in
        request.logger.info("Begun")
        do {
          for try await piece in request.body { try await writer.write(piece) }
        } catch {
          request.logger.notice("Cut")
          throw error
        }
      }
    }
  }

  /// Sends as many bytes as the query says, then ends as the path says.
  var produce: OnRequest {
    .init("produce", options: .init(timeout: .seconds(20))) { request in
      let count = request.query("bytes").flatMap(Int.init) ?? 0
      if request.path == "/throw" { throw SpellingFailed() }
      if request.path == "/crash" { fatalError("crashed as asked") }
      if request.path == "/none" { return HTTPFunctionResponse(status: .noContent) }
      return .stream { writer in
        request.logger.info("Begun")
        let piece = Array(repeating: UInt8(ascii: "x"), count: 64 << 10)
        var rest = count
        do {
          while rest > 0 {
            try await writer.write(piece.prefix(rest))
            rest -= piece.count
          }
        } catch {
          request.logger.notice("Cancelled")
          throw error
        }
        if request.path == "/cut" { throw SpellingFailed() }
      }
    }
  }
}
