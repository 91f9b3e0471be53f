import Deployment
import DocumentModel
import Events
import Foundation
import Identity
import Manifests
import Schedules
import Testing
import TestSupport
import TriggerDelivery

@testable import EmulatorSuite

/// Manifests with extreme numbers and texts, run through everything that uses them.
@Suite("Hostile manifests")
struct HostileManifestTests {
  private static let integers = [
    Int.min, -1, 0, 1, 2, 5, 80, 100, 128, 540, 1000, 1001, 5000, 1 << 31, 1 << 44, .max,
  ]
  private static let doubles = [
    -Double.greatestFiniteMagnitude, -1, -0.0, 0, .leastNonzeroMagnitude, 1e-300, 0.1, 1, 500,
    2_678_400, 2_678_401, 1e18, 9.3e18, 1e300, .greatestFiniteMagnitude,
  ]
  private static let schedules = [
    "* * * * *", "every 99999 hours from 23:59 to 00:00", "5th monday of feb 00:00",
    "every 7 minutes from 12:00 to 11:59", "0 0 29 2 *",
  ]
  private static let texts = [
    "", " ", "/", "a", "a/b", "a/{b}", "a/{b", "{b=**}", "a//b", "eu-west1", "eu/west1", "..",
    "every 5 minutes", "0 0 30 2 *", "@daily", "every 7 minutes synchronized", "GMT+99",
    "\0", "\u{1F9E1}", "google.cloud.firestore.document.v1.written",
    "google.cloud.firestore.document.v1.created", "(default)", "document", "database",
    String(repeating: "a/", count: 10_000), String(repeating: "9", count: 400),
  ]

  /// A generator of endpoints whose options are each absent, plausible or extreme.
  private struct Draw {
    var generator: SeededGenerator

    mutating func one<Value>(of values: [Value]) -> Value {
      values[Int.random(in: values.indices, using: &generator)]
    }

    mutating func maybe<Value>(_ make: (inout Draw) -> Value) -> Value? {
      Bool.random(using: &generator) ? make(&self) : nil
    }

    /// Returns mostly a value of `plausible`, otherwise one of `extreme`.
    mutating func one<Value>(of plausible: [Value], or extreme: [Value]) -> Value {
      Int.random(in: 0..<8, using: &generator) == 0 ? one(of: extreme) : one(of: plausible)
    }

    mutating func integer(_ plausible: [Int]) -> Int {
      one(of: plausible, or: HostileManifestTests.integers)
    }

    mutating func text(_ plausible: [String] = HostileManifestTests.texts) -> String {
      one(of: plausible, or: HostileManifestTests.texts)
    }

    /// Returns a number, sometimes NaN or infinity, which JSON cannot represent.
    mutating func double(_ plausible: [Double]) -> Double {
      one(of: plausible, or: HostileManifestTests.doubles + [.nan, .infinity])
    }

    mutating func retry() -> FunctionEndpoint.RetryConfig {
      let seconds = [0, 0.1, 1, FunctionLimits.retrySecondsMax]
      return FunctionEndpoint.RetryConfig(
        maxAttempts: maybe { $0.integer([-1, 1, 5, .max]) },
        retryCount: maybe { $0.integer([0, 5]) },
        maxRetrySeconds: maybe { $0.double(seconds) },
        minBackoffSeconds: maybe { $0.double(seconds) },
        maxBackoffSeconds: maybe { $0.double(seconds) },
        maxDoublings: maybe { $0.integer([0, 16, .max]) }
      )
    }

    mutating func endpoint() -> FunctionEndpoint {
      var endpoint = FunctionEndpoint(
        entryPoint: "f",
        region: maybe { [$0.text(["eu-west1"])] } ?? []
      )
      endpoint.timeoutSeconds = maybe { $0.integer([1, 540]) }
      endpoint.availableMemoryMb = maybe { $0.integer([128, 32_768]) }
      endpoint.concurrency = maybe { $0.integer([1, 1000]) }
      endpoint.minInstances = maybe { $0.integer([0, 1]) }
      endpoint.maxInstances = maybe { $0.integer([1, 1000]) }
      endpoint.secretEnvironmentVariables = maybe { [.init(key: $0.text(["KEY"]))] }
      switch Int.random(in: 0..<4, using: &generator) {
      case 0: endpoint.callableTrigger = .init()
      case 1:
        endpoint.scheduleTrigger = .init(
          schedule: text(HostileManifestTests.schedules),
          timeZone: maybe { $0.text(["Europe/Berlin"]) },
          retryConfig: maybe { $0.retry() }
        )
      case 2:
        endpoint.taskQueueTrigger = .init(
          rateLimits: maybe { draw in
            .init(
              maxConcurrentDispatches: draw.maybe { $0.integer([1, 5000]) },
              maxDispatchesPerSecond: draw.maybe { $0.double([1e-300, 500]) }
            )
          },
          retryConfig: maybe { $0.retry() }
        )
      default:
        endpoint.eventTrigger = .init(
          eventType: text(["google.cloud.firestore.document.v1.written", "some.type"]),
          eventFilters: maybe { [$0.text(): $0.text()] } ?? [:],
          eventFilterPathPatterns: [text(): "a/{b}"].merging(["document": text(["a/{b}"])]) { $1 },
          retry: Bool.random(using: &generator),
          retryConfig: maybe { $0.retry() }
        )
      }
      return endpoint
    }
  }

  @Test("What the validation accepts can be served, whatever is in it")
  func acceptedIsServable() throws {
    var draw = Draw(generator: .forTest())
    var accepted: [String: Int] = [:]
    for _ in 0..<5000 {
      let name = draw.text(["f"])
      let endpoint = draw.endpoint()
      guard (try? ManifestCheck.validate([name: endpoint])) != nil else { continue }
      let kind =
        endpoint.callableTrigger != nil
        ? "call"
        : endpoint.scheduleTrigger != nil
          ? "schedule" : endpoint.taskQueueTrigger != nil ? "task" : "event"
      accepted[kind, default: 0] += 1
      try serve(name, endpoint)
    }
    // A validation that refuses everything would pass the checks above too.
    #expect(accepted.count == 4 && accepted.values.allSatisfy { $0 > 100 }, "\(accepted)")
  }

  /// Computes everything that the server computes for a function.
  private func serve(_ name: String, _ endpoint: FunctionEndpoint) throws {
    try TriggerCheck.validate([name: endpoint])
    let now = Timestamp(microseconds: 1_800_000_000_000_000)
    let retries = DeliveryRetries(endpoint)
    let limits = DispatchLimits(endpoint)
    #expect(limits.concurrentMax >= 1 && limits.perSecondMax ?? 1 > 0)
    if let rate = limits.perSecondMax { _ = now.advanced(by: .seconds(1 / rate)) }
    var delivery = Delivery(
      id: DeliveryID(sequence: 1, changeIndex: 0, function: name),
      event: DeliveryEvent(
        content: .occurrence(.schedule(function: name, time: now)),
        commitTime: now,
        auth: .admin
      )
    )
    for attempts in [0, 1, 2, 40, 1_000_000, .max - 1] {
      delivery.attempts = attempts
      for outcome: DeliveryPolicy.Outcome in [
        .handlerFailed("no", status: 500, advice: nil), .crashed("gone"),
      ] {
        let settled = DeliveryPolicy().settle(
          delivery,
          outcome,
          retry: retries,
          start: now,
          now: now
        )
        #expect(settled.dueTime >= delivery.dueTime)
      }
    }
    if let trigger = endpoint.scheduleTrigger {
      let schedule = try Schedule(trigger.schedule, timeZone: trigger.timeZone)
      #expect(schedule.next(after: now) != nil)
      _ = schedule.previous(atOrBefore: now)
    }
    _ = FunctionDescription(
      name: name,
      endpoint: endpoint,
      project: "demo-test",
      address: ServiceAddress(host: "127.0.0.1", port: 1)
    )
    _ = try JSONEncoder().encode(FunctionManifest(endpoints: [name: endpoint]))
  }
}
