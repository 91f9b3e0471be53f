import DatabaseTree
import DocumentModel
import HTTPMessages
import HTTPSupport
import JSONText
import NIOCore
import RealtimeDatabaseEmulator
import StatusCodes
import TriggerDelivery

/// Virtual time and fault injection.
extension ControlAPI {
  /// Handles `GET /hearth/v1/clock`.
  func clock() -> ClockDescription {
    ClockDescription(
      now: time.now.description,
      aheadSeconds: time.offset / .seconds(1)
    )
  }

  /// Handles `POST /hearth/v1/clock`, which advances the virtual time.
  ///
  /// The body is `{"advanceSeconds": 3600}` or `{"to": "2026-12-01T00:00:00Z"}`. Everything that
  /// becomes due on the way happens in order. If the client disconnects or the suite stops, the
  /// clock stays at the time it has reached. In the meantime, `GET` returns that time.
  func advanceClock(_ request: Request) async throws -> Response {
    struct Jump: Decodable {
      var advanceSeconds: Double?
      var to: String?
    }
    let jump: Jump = try await body(of: request, like: #"{"advanceSeconds": 3600}"#)
    let target: Timestamp
    switch (jump.advanceSeconds, jump.to) {
    case (let seconds?, nil):
      guard (0...Self.jumpSecondsMax).contains(seconds) else {
        throw StatusError.invalidArgument(
          "advanceSeconds is \(seconds); give 0 to \(Int(Self.jumpSecondsMax)). "
            + "Time never goes back."
        )
      }
      target = time.now.advanced(by: .seconds(seconds))
    case (nil, let text?):
      guard let parsed = Timestamp(text) else {
        throw StatusError.invalidArgument(
          "\"\(text)\" is not a time; write one such as 2026-12-01T00:00:00Z."
        )
      }
      guard parsed >= time.now, parsed.duration(since: time.now) <= .seconds(Self.jumpSecondsMax)
      else {
        throw StatusError.invalidArgument(
          "It is \(time.now) now; name a later time within ten years. Time never goes back."
        )
      }
      target = parsed
    default:
      throw StatusError.invalidArgument("Give advanceSeconds or to.")
    }
    guard target <= Self.latest else {
      throw StatusError.invalidArgument("Firestore's time ends with the year 9999.")
    }
    try await stopNotice.untilStop { [deliveries, time] in
      try await deliveries.passTime(to: target, in: time)
    }
    return try .json(encoding: clock())
  }

  /// Handles `PUT /hearth/v1/faults` with `{"seed": 7, "duplicates": 0.3, "reordering": true}`.
  func setFaults(_ request: Request) async throws -> Response {
    struct Faults: Decodable {
      var seed: UInt64
      var duplicates: Double?
      var drops: Double?
      var reordering: Bool?
    }
    let faults: Faults = try await body(of: request, like: #"{"seed": 7, "duplicates": 0.3}"#)
    for (name, part) in [("duplicates", faults.duplicates), ("drops", faults.drops)] {
      guard let part, !(0...1).contains(part) else { continue }
      throw StatusError.invalidArgument("\(name) is \(part); give a part from 0 to 1.")
    }
    let plan = FaultPlan(
      seed: faults.seed,
      duplicates: faults.duplicates ?? 0,
      reordering: faults.reordering ?? false,
      drops: faults.drops ?? 0
    )
    deliveries.faults = plan
    return try .json(encoding: plan)
  }

  /// Handles `POST /hearth/v1/faults/disconnect`: ends the Realtime Database's connections.
  func disconnectClients() throws -> Response {
    let count = database.counts.values.reduce(0) { $0 + $1.sessions }
    databaseService.endAll()
    return try .json(encoding: EventCount(count: count))
  }

  private func body<Body: Decodable>(of request: Request, like example: String) async throws -> Body
  {
    let bytes = try await request.wholeBody(upTo: 64 << 10)
    do {
      return try Body(decodingJSON: bytes.readableBytesView)
    } catch {
      throw StatusError.invalidArgument("The body must be JSON like \(example).")
    }
  }

  /// The latest time to jump to: a day before the end of Firestore's time range, for later writes.
  private static let latest = Timestamp(microseconds: 253_402_214_400_000_000)
  /// The longest jump, ten years; with a schedule that runs every minute it would take hours.
  private static let jumpSecondsMax = 10 * 366 * 86_400.0
}
