import FunctionsRuntime

/// Streaming callables and HTTP functions that succeed or fail as the request asks.
struct SampleStreams: Sendable {
  struct Spelling: Codable, Sendable {
    var text: String
    /// The action after the last chunk: `fail`, `throw` or `crash`; by default it returns a result.
    var ending: String?
  }

  struct SpellingError: Error {}

  /// Streams the characters of a text, then ends as requested.
  var spell: OnStreamingCall<Spelling, Int, String> {
    .init("spell") { request, stream in
      for character in request.data.text { try await stream.send(String(character)) }
      switch request.data.ending {
      case "fail": throw CallableError(.failedPrecondition, "failed as asked", details: [1])
      case "throw": throw SpellingError()
      case "crash": fatalError("crashed as asked")
      default: break
      }
      return request.data.text.count
    }
  }

  /// Streams a text as one chunk and runs until it is cancelled.
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

  /// Streams its data as a chunk and returns it.
  var numbers: OnStreamingCall<Numbers, Numbers, Numbers> {
    .init("numbers") { request, stream in
      try await stream.send(request.data)
      return request.data
    }
  }

  /// Returns the calling app's ID.
  var whichApp: OnCall<FirestoreValue, String?> {
    .init("whichApp", options: .init(enforceAppCheck: true, consumeAppCheckToken: true)) {
      request in
      request.app.map { "\($0.appID) \($0.alreadyConsumed == true)" }
    }
  }

  /// Runs one call at a time; a call with `hold` occupies the only worker while the others wait.
  var turnstile: OnCall<String, Bool> {
    .init("turnstile", options: .init(timeout: .seconds(30), concurrency: 1, maxInstances: 1)) {
      request in
      request.logger.info("Begun \(request.data)")
      guard request.data == "hold" else { return true }
      try await Task.sleep(for: .seconds(3600))
      return false
    }
  }

  /// Returns the received method, path, query, relevant headers and body length.
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

  /// Streams each piece of the body back as it arrives.
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

  /// Sends the number of bytes in the query, then ends as the path requests.
  var produce: OnRequest {
    .init("produce", options: .init(timeout: .seconds(20))) { request in
      let count = request.query("bytes").flatMap(Int.init) ?? 0
      if request.path == "/throw" { throw SpellingError() }
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
        if request.path == "/cut" { throw SpellingError() }
      }
    }
  }
}
