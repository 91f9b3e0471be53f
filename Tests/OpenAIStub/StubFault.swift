/// Something that goes wrong with a call, once or some times.
package struct StubFault: Sendable, Hashable, Codable {
  /// The route of the call.
  package var route: StubRoute
  /// Which call from now on, the next one being 1; unless given, the first one after those for
  /// which faults are planned already.
  package var call: Int?
  /// How many calls in a row; one unless given.
  package var times: Int?
  /// The status instead of an answer; 200 with a `body` alone.
  package var status: Int?
  /// The body instead of an answer: JSON, or a string that is sent as it stands.
  package var body: JSON?
  /// Header fields beside the usual ones.
  package var headers: [String: String]?
  /// Seconds for which the answer is held back.
  package var delaySeconds: Double?
  /// Closes the connection instead of an answer.
  package var reset: Bool?
  /// Ends the connection after this many events, or in the middle of an answer without any.
  package var truncateAfter: Int?
  /// What is wrong with an answer otherwise right.
  package var alter: Alteration?

  /// Answers that are wrong in one way.
  package enum Alteration: String, Sendable, Hashable, Codable, CaseIterable {
    case withoutUsage
    /// JSON that breaks off, though the response itself is whole.
    case halfJSON
    /// One vector less than inputs.
    case vectorMissing
    /// Vectors of one number less.
    case vectorsShort
    /// Vectors with something that is not a number, which only base64 can hold.
    case vectorsNotANumber
    /// Vectors three times as long as the unit.
    case vectorsUnscaled
  }

  /// A fault that follows upon those planned before, unless `call` says otherwise.
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

  /// Throws where a number makes no sense.
  func validate() throws {
    let isSensible =
      (1...1_000_000).contains(call ?? 1) && (1...1_000_000).contains(times ?? 1)
      && (200...599).contains(status ?? 200) && (0...3600).contains(delaySeconds ?? 0)
      && (0...1_000_000).contains(truncateAfter ?? 0)
    guard isSensible else { throw StubRefusal("a number of the fault is out of range") }
  }

  /// The answer that takes the place of the real one; nil if there is one to be had.
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

  /// Does to an answer what is planned.
  func apply(to response: inout StubResponse) {
    response.headers.merge(headers ?? [:]) { $1 }
    response.delay = .milliseconds(Int((delaySeconds ?? 0) * 1000))
    if let truncateAfter { response.truncate(after: truncateAfter) }
    if alter == .halfJSON { response.pieces = response.pieces.map { $0.dropLast($0.count / 2) } }
  }

  /// How the API words a status.
  private static func failure(_ status: Int) -> StubRefusal {
    var refusal = StubRefusal("The stub answers \(status) as planned.", status: status)
    if status == 429 {
      refusal.type = "requests"
      refusal.code = "rate_limit_exceeded"
    } else if status >= 500 {
      refusal.type = "server_error"
    }
    return refusal
  }
}
