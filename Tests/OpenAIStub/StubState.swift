import Foundation

/// The complete state of the stub: it answers requests and records both sides.
package struct StubState: Sendable {
  private var script = StubScript()
  private var faults: [PlannedFault] = []
  private var calls: [StubRoute: Int] = [:]
  /// The requests received so far.
  package private(set) var journal = StubJournal()

  /// A fault and the calls that it still affects.
  private struct PlannedFault {
    var fault: StubFault
    var calls: Range<Int>
  }

  /// Creates a stub without a script: it serves embeddings but has no chat replies.
  package init() {}

  /// The number of queued chat replies that no call has taken yet.
  package var repliesLeft: Int { script.chat?.count ?? 0 }

  // Far more than a test needs, so that a loop that never resets the stub is noticed.
  private static let repliesMax = 10_000
  private static let faultsMax = 1000

  /// Adds to the script; throws if a number in it is out of range or it grows too long.
  package mutating func add(_ script: StubScript) throws {
    try script.validate()
    var longer = self.script
    longer.add(script)
    guard (longer.chat ?? []).count + (longer.rules ?? []).count <= Self.repliesMax else {
      throw StubError("more than \(Self.repliesMax) replies are scripted; reset the stub")
    }
    self.script = longer
  }

  /// Plans a fault; throws if a number in it is out of range or too many are planned.
  package mutating func plan(_ fault: StubFault) throws {
    try fault.validate()
    guard faults.count < Self.faultsMax else {
      throw StubError("more than \(Self.faultsMax) faults are planned; reset the stub")
    }
    let asked = calls[fault.route, default: 0]
    let planned = faults.filter { $0.fault.route == fault.route }.map(\.calls.upperBound)
    let first = fault.call.map { asked + $0 } ?? planned.reduce(asked + 1, max)
    faults.append(PlannedFault(fault: fault, calls: first..<first + max(1, fault.times ?? 1)))
  }

  /// Returns the response to one request and records both.
  package mutating func answer(_ request: StubRequest) -> StubResponse {
    if request.path.hasPrefix("/stub/") { return control(request) }
    guard let route = StubRoute(request.method, request.path) else {
      let message = "Invalid URL (\(request.method) \(request.path))"
      return StubError(message, code: "unknown_url", status: 404).response
    }
    let call = calls[route, default: 0] + 1
    calls[route] = call
    let fault = faults.first { $0.fault.route == route && $0.calls.contains(call) }?.fault
    faults.removeAll { $0.fault.route == route && $0.calls.upperBound <= call + 1 }
    let body = JSON(parsing: request.body)
    var response =
      fault?.replacement ?? real(route, request, body, id: "\(call)", fault?.alter)
    response.headers["x-request-id"] = "req_\(route.rawValue)_\(call)"
    fault?.apply(to: &response)
    response.call = (call, route)
    journal.add(
      StubJournal.Entry(
        call: call,
        route: route,
        request: body ?? .null,
        bytes: request.body.count,
        status: response.status,
        isFault: fault != nil
      )
    )
    return response
  }

  /// Records that a client disconnected before its response.
  package mutating func clientLeft(_ response: StubResponse) {
    if let call = response.call { journal.clientLeft(call.number, call.route) }
  }

  /// The API's response, with the script in place of a model.
  private mutating func real(
    _ route: StubRoute,
    _ request: StubRequest,
    _ body: JSON?,
    id: String,
    _ alteration: StubFault.Alteration?
  ) -> StubResponse {
    do {
      try authenticate(request)
      if route == .models { return try models(request.path) }
      guard let body, body.properties != nil else {
        throw StubError("We could not parse the JSON body of your request.")
      }
      try checkModel(try body.model())
      if route == .embeddings {
        let call = try EmbeddingsCall(body, embedding: script.embeddings ?? StubEmbedding())
        return call.answer(alteration)
      }
      let call = try ChatCall(body)
      let reply = script.takeReply(
        lastUserText: call.lastUserText,
        endsWithTool: call.endsWithTool
      )
      guard let reply else {
        throw StubError.unscripted("no reply is scripted for this call; POST one to /stub/script")
      }
      try call.check(reply)
      try script.checkKnown(reply, in: body["messages"])
      return ChatCompletion(
        id: id,
        call: call,
        reply: reply,
        hasUsage: alteration != .withoutUsage
      ).response
    } catch let refusal as StubError {
      return refusal.response
    } catch {
      return StubError("\(error)", status: 500).response
    }
  }

  private func authenticate(_ request: StubRequest) throws {
    guard let field = request.authorization, field.hasPrefix("Bearer "), field.count > 7 else {
      throw StubError(
        "You didn't provide an API key. You need to provide your API key in an Authorization "
          + "header using Bearer auth.",
        status: 401
      )
    }
    if let key = script.key, field != "Bearer \(key)" {
      throw StubError("Incorrect API key provided.", code: "invalid_api_key", status: 401)
    }
  }

  private var modelNames: [String] { script.models ?? StubScript.usualModels }

  private func checkModel(_ model: String) throws {
    guard modelNames.contains(model) else {
      throw StubError(
        "The model `\(model)` does not exist or you do not have access to it.",
        code: "model_not_found",
        status: 404
      )
    }
  }

  private func models(_ path: String) throws -> StubResponse {
    func description(_ name: String) -> JSON {
      ["id": .string(name), "object": "model", "created": 0, "owned_by": "stub"]
    }
    if path == "/v1/models" {
      return StubResponse(["object": "list", "data": .array(modelNames.map(description))])
    }
    let name = String(path.dropFirst("/v1/models/".count))
    try checkModel(name)
    return StubResponse(description(name))
  }

  // MARK: Control

  private struct Faults: Codable {
    var faults: [StubFault]
  }

  private mutating func control(_ request: StubRequest) -> StubResponse {
    do {
      switch (request.method, request.path) {
      case ("POST", "/stub/reset"): self = StubState()
      case ("POST", "/stub/script"): try add(JSON.decode(StubScript.self, from: request.body))
      case ("POST", "/stub/faults"):
        for fault in try JSON.decode(Faults.self, from: request.body).faults { try plan(fault) }
      case ("GET", "/stub/journal"):
        return StubResponse(
          status: 200,
          text: String(decoding: try JSONEncoder().encode(journal), as: UTF8.self)
        )
      case ("DELETE", "/stub/journal"): journal = StubJournal()
      default:
        throw StubError("the stub has no \(request.method) \(request.path)", status: 404)
      }
      return StubResponse(["repliesLeft": JSON(repliesLeft), "faultsLeft": JSON(faults.count)])
    } catch let refusal as StubError {
      return refusal.response
    } catch {
      return StubError("the stub cannot read that: \(error)").response
    }
  }
}

extension JSON {
  /// Parses JSON text; nil if it is invalid.
  package init?(parsing text: String) { self.init(parsing: Array(text.utf8)) }

  /// Parses JSON bytes; nil if they are invalid.
  package init?(parsing bytes: [UInt8]) {
    // The API does not report the reason either.
    guard let value = try? JSONDecoder().decode(JSON.self, from: Data(bytes)) else { return nil }
    self = value
  }

  /// Returns the model that a request names; throws if there is none.
  func model() throws -> String {
    guard let model = self["model"]?.text, !model.isEmpty else {
      throw StubError("you must provide a model parameter", param: "model")
    }
    return model
  }
}
