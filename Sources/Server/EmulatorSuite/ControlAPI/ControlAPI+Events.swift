import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import ServiceLifecycle
import StatusCodes
import TriggerDelivery
import WorkerPool

/// Function logs, event deliveries, and waiting for deliveries.
extension ControlAPI {
  /// Handles `GET /hearth/v1/logs`, oldest first; see `LogFilter` for the query.
  func logLines(_ query: QueryParameters, _ client: ClientWatch) async throws -> Response {
    let filter = try LogFilter(query)
    let limit = try query.number("limit", in: 0...Self.linesMax) ?? 200
    let follows = query["follow"] == "true"
    let logs = self.logs
    if !follows { try await fleet.logEnds() }
    let following = follows ? logs.stream(function: filter.function) : nil
    // All lines are read, because lines that the filter excludes must not count toward the limit.
    let past = await logs.entries(
      function: filter.function,
      limit: filter.takesAll ? limit : Self.linesMax
    )
    let body = Response.Body.produced { write in
      try await client.whileConnected {
        // Each piece is written before the next one is created. A client that does not read
        // therefore cannot make the server hold a copy of the log.
        var piece = ByteBuffer()
        for entry in past.filter(filter.takes).suffix(limit) {
          piece.writeImmutableBuffer(Self.line(entry))
          guard piece.readableBytes >= Self.logPieceBytes else { continue }
          try await write(piece)
          piece = ByteBuffer()
        }
        try await write(piece)
        guard let following else { return }
        for await entry in following.cancelOnGracefulShutdown() where filter.takes(entry) {
          try await write(Self.line(entry))
        }
      }
    }
    return Response(status: .ok, headers: [.contentType: "application/x-ndjson"], body: body)
  }

  /// The size of the pieces in which past log lines are sent.
  private static let logPieceBytes = 64 << 10

  func events(_ query: QueryParameters) async throws -> Response {
    var state: Delivery.State?
    if let name = query["state"], name != "running" {
      guard let known = Delivery.State(rawValue: name) else {
        let names = (["running"] + Delivery.State.allCases.map(\.rawValue)).joined(separator: ", ")
        throw StatusError.invalidArgument("\"\(name)\" is not a state; the states are \(names).")
      }
      state = known
    }
    let limit = try query.number("limit", in: 1...Self.eventsMax) ?? 50
    let found = try await deliveries.administration.list(
      state: state,
      isRunning: query["state"] == "running" ? true : nil,
      function: query["function"],
      limit: limit
    )
    return try .json(encoding: await descriptions(of: found))
  }

  private func descriptions(of found: [Delivery]) async throws -> [EventDescription] {
    let administration = deliveries.administration
    let reasons = try await administration.waitReasons(of: found)
    return found.map { delivery in
      EventDescription(
        delivery,
        isRunning: administration.isRunning(delivery.id),
        reason: reasons[delivery.id]
      )
    }
  }

  /// Handles `POST /hearth/v1/events/retry?state=&function=`.
  ///
  /// Retries all failed and dead events, or those that match the query.
  func retryAll(_ query: QueryParameters) async throws -> Response {
    try await forAll(query, states: [.failed, .dead]) {
      try await deliveries.administration.retryAll($0)
    }
  }

  /// Handles `POST /hearth/v1/events/ID/retry`: retries a failed or dead event.
  func retry(_ id: DeliveryID) async throws -> Response {
    try .json(
      encoding: EventDescription(try await deliveries.administration.retry(id), isRunning: false)
    )
  }

  /// Handles `POST /hearth/v1/events/{id}/discard`.
  func discard(_ id: DeliveryID) async throws -> Response {
    try await deliveries.administration.discard(id)
    return .json("{}")
  }

  /// Handles `POST /hearth/v1/events/discard?state=&function=`.
  func discardAll(_ query: QueryParameters) async throws -> Response {
    guard query["state"] != nil else {
      throw StatusError.invalidArgument("Name a state: pending, failed or dead.")
    }
    return try await forAll(query, states: [.pending, .failed, .dead]) {
      try await deliveries.administration.discardAll($0)
    }
  }

  /// Applies an action to all deliveries in the requested states, batch by batch.
  func forAll(
    _ query: QueryParameters,
    states: [Delivery.State],
    _ body: ([DeliveryID]) async throws -> Int
  ) async throws -> Response {
    var chosen = states
    if let name = query["state"] {
      guard let state = Delivery.State(rawValue: name), states.contains(state) else {
        let names = states.map(\.rawValue).joined(separator: " or ")
        throw StatusError.invalidArgument("state is \(names), not \"\(name)\".")
      }
      chosen = [state]
    }
    var count = 0
    for state in chosen {
      // The number of batches is bounded, in case deliveries arrive as fast as they are handled.
      for _ in 0..<Self.batchesMax {
        let batch = try await deliveries.administration.list(
          state: state,
          isRunning: false,
          function: query["function"],
          // Settled deliveries are few and are read at once. A retried one may already have failed
          // again by the next batch.
          limit: state == .pending ? Self.eventsMax : .max
        )
        count += try await body(batch.map(\.id))
        if state != .pending || batch.count < Self.eventsMax { break }
      }
    }
    return try .json(encoding: EventCount(count: count))
  }

  func event(_ id: DeliveryID) async throws -> Response {
    let delivery = try await deliveries.administration.show(id)
    var description = try await descriptions(of: [delivery])[0]
    description.trace = try await deliveries.administration.traceID(of: delivery)
    return try .json(encoding: description)
  }

  func id(_ text: String) throws -> DeliveryID {
    guard let id = DeliveryID(text) else {
      throw StatusError.invalidArgument(
        "\"\(text)\" is not an event's id; `hearth events list` shows them."
      )
    }
    return id
  }

  /// Waits until all events are delivered; throws `DEADLINE_EXCEEDED` with the pending ones.
  func settle(_ query: QueryParameters) async throws -> Response {
    let seconds = try query.number("timeoutSeconds", in: 0.0...600.0) ?? 30
    let deliveries = self.deliveries
    let isSettled = try await stopNotice.untilStop {
      try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask {
          try await deliveries.waitUntilIdle()
          return true
        }
        group.addTask {
          try await Task.sleep(for: .seconds(seconds))
          return false
        }
        defer { group.cancelAll() }
        return try await group.next() ?? false
      }
    }
    guard isSettled else {
      let pending = try await deliveries.administration.list(state: .pending, limit: 10)
      let reasons = try await deliveries.administration.waitReasons(of: pending)
      let names = pending.map { delivery in
        let reason = reasons[delivery.id]?.text
        let why = [delivery.lastError, reason].compactMap(\.self).joined(separator: " ")
        return "\(delivery.id)\(why.isEmpty ? "" : " (\(why))")"
      }.joined(separator: ", ")
      throw StatusError(
        .deadlineExceeded,
        "Not settled after \(seconds) s. Pending: \(names.isEmpty ? "events that no deployment has taken yet" : names)."
      )
    }
    return .json("{}")
  }

  private static let eventsMax = 1000
  private static let batchesMax = 1000
}
