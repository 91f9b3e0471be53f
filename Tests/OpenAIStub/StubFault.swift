/// A planned failure of one or more calls.
package struct StubFault: Sendable, Hashable, Codable {
  /// The route that fails.
  package var route: StubRoute
  /// The first failing call, counted from the next call as 1.
  ///
  /// By default it is the first call after those for which faults are already planned.
  package var call: Int?
  /// The number of consecutive calls that fail; one by default.
  package var times: Int?
  /// The status of the error response; 200 if only a `body` is given.
  package var status: Int?
  /// The body of the response: JSON, or a string that is sent verbatim.
  package var body: JSON?
  /// Header fields added to the usual ones.
  package var headers: [String: String]?
  /// The delay of the response in seconds.
  package var delaySeconds: Double?
  /// Closes the connection without a response.
  package var reset: Bool?
  /// Closes the connection after this many events of a stream.
  ///
  /// Any other response breaks off halfway.
  package var truncateAfter: Int?
  /// The error in an otherwise correct response.
  package var alter: Alteration?

  /// The errors that an otherwise correct response can have.
  package enum Alteration: String, Sendable, Hashable, Codable, CaseIterable {
    case withoutUsage
    /// Truncated JSON in a complete HTTP response.
    case halfJSON
    /// One vector fewer than there are inputs.
    case vectorMissing
    /// Vectors that are one number too short.
    case vectorsShort
    /// Vectors that contain NaN; only base64 can represent it.
    case vectorsNotANumber
    /// Vectors of length three instead of one.
    case vectorsUnscaled
  }

  /// Creates a fault that follows the faults planned before it, unless `call` is given.
  package init(
    _ route: StubRoute,
    call: Int? = nil,
    times: Int? = nil,
    status: Int? = nil,
    body: JSON? = nil,
    headers: [String: String]? = nil,
    delaySeconds: Double? = nil,
    reset: Bool? = nil,
    truncateAfter: Int? = nil,
    alter: Alteration? = nil
  ) {
    self.route = route
    self.call = call
    self.times = times
    self.status = status
    self.body = body
    self.headers = headers
    self.delaySeconds = delaySeconds
    self.reset = reset
    self.truncateAfter = truncateAfter
    self.alter = alter
  }

  /// Throws if a number is out of range.
  func validate() throws {
    let isSensible =
      (1...1_000_000).contains(call ?? 1) && (1...1_000_000).contains(times ?? 1)
      && (200...599).contains(status ?? 200) && (0...3600).contains(delaySeconds ?? 0)
      && (0...1_000_000).contains(truncateAfter ?? 0)
    guard isSensible else { throw StubError("a number of the fault is out of range") }
  }

  /// The response that replaces the real one; nil if the real one is sent.
  var replacement: StubResponse? {
    if reset == true {
      var response = StubResponse(status: 0, text: "")
      response.ending = .reset
      return response
    }
    guard status != nil || body != nil else { return nil }
    let status = status ?? 200
    return switch body {
    case .string(let text): StubResponse(status: status, text: text)
    case let body?: StubResponse(status: status, body)
    case nil: Self.failure(status).response
    }
  }

  /// Applies the planned headers, delay and damage to a response.
  func apply(to response: inout StubResponse) {
    response.headers.merge(headers ?? [:]) { $1 }
    response.delay = .milliseconds(Int((delaySeconds ?? 0) * 1000))
    if let truncateAfter { response.truncate(after: truncateAfter) }
    if alter == .halfJSON { response.pieces = response.pieces.map { $0.dropLast($0.count / 2) } }
  }

  /// The API's error for a status.
  private static func failure(_ status: Int) -> StubError {
    var refusal = StubError("The stub answers \(status) as planned.", status: status)
    if status == 429 {
      refusal.type = "requests"
      refusal.code = "rate_limit_exceeded"
    } else if status >= 500 {
      refusal.type = "server_error"
    }
    return refusal
  }
}
