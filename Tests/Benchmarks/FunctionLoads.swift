import Foundation
import LibC
import NIOCore
import NIOPosix

/// The project folder from which `hearth start` reads the functions' settings.
struct FunctionsProject: Sendable {
  let folder: String
  /// The file that the sample triggers write to.
  var output: String { folder + "/output" }

  /// Creates the folder; `environment` is passed to the functions.
  init(folder: String, environment: [String: String] = [:]) throws {
    self.folder = folder
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try #"{"functions": {"source": "."}}"#.write(
      toFile: folder + "/firebase.json",
      atomically: true,
      encoding: .utf8
    )
    let variables = environment.merging(["SAMPLE_OUTPUT": output]) { $1 }
    try variables.map { "\($0)=\($1)\n" }.joined().write(
      toFile: folder + "/.env",
      atomically: true,
      encoding: .utf8
    )
  }
}

/// Waits by polling `isDone`; throws when `timeMax` has passed.
func poll(
  within timeMax: Duration,
  every pause: Duration = .milliseconds(10),
  _ what: String,
  until isDone: () async throws -> Bool
) async throws {
  let end = ContinuousClock.now + timeMax
  while try await !isDone() {
    guard ContinuousClock.now < end else { throw BenchmarkError("Waited too long for \(what).") }
    try await Task.sleep(for: pause)
  }
}

/// Calls of one callable, or of any other endpoint that accepts a POST.
struct CallableLoad: Sendable {
  var address: Address
  var path: String

  private static let body = ByteBuffer(
    string: #"{"data":{"text":"The knee is better today.","numbers":[1,2,3],"isRead":false}}"#
  )

  func run(_ load: Load) async throws -> Measurement {
    try await load.run {
      HTTP1Connection.connect(to: address, path: path, on: $0)
    } body: { _, _ in
      Self.body
    }
  }

  /// Waits until the function is deployed.
  func waitUntilServed() async throws {
    try await firstAnswer(lookingEvery: .milliseconds(50))
  }

  /// Sends requests until one succeeds.
  func firstAnswer(lookingEvery pause: Duration = .milliseconds(1)) async throws {
    try await poll(within: .seconds(30), every: pause, "the functions") {
      let loop = Load.eventLoops.next()
      let reply = HTTP1Connection.connect(to: address, path: path, on: loop).flatMap { connection in
        let promise = loop.makePromise(of: Void.self)
        promise.failing(at: .now() + .seconds(10))
        connection.send(Self.body) { reply in
          promise.completeWith(reply.map { _ in })
          connection.close()
        }
        return promise.futureResult
      }
      // Until the function is deployed the status is 404, so errors mean that the wait continues.
      return (try? await reply.get()) != nil
    }
  }
}

/// The latency, cost and rate of one function in an otherwise idle suite.
struct TriggerLoad: Sendable {
  var firestore: FirestoreLoad
  var output: String
  var server: Int32
  var duration: Duration

  /// The number of events written at once to measure the delivery rate.
  private static let burst = 1000

  /// Measures the time from a write to its function's start, the cost of events, and their rate.
  func run(_ figures: Figures) async throws {
    let paced = PacedWrites(firestore: firestore, output: output)
    try await paced.warmUp()
    let (times, use) = try await ProcessorUse.counted(server) {
      try await paced.measure("paced", for: duration)
    }
    for (percentile, share) in [(50, 0.5), (99, 0.99)] {
      let after = Figures.text(times.sinceAcknowledged.milliseconds(share))
      figures.record(
        .functionStartMilliseconds(percentile: percentile),
        times.sinceSent.milliseconds(share),
        note: "from sending the write; from its acknowledgement \(after)"
      )
    }
    figures.record(use, for: .pacedEvent, count: times.sinceSent.count)
    try await measureRate(figures)
  }

  private func measureRate(_ figures: Figures) async throws {
    let ids = (0..<Self.burst).map { "burst\($0)" }
    let began = Int64(NIODeadline.now().uptimeNanoseconds)
    try await firestore.createAll(ids.map { "clocked/\($0)" })
    let starts = try await FunctionStarts.wait(for: ids, in: output)
    let last = ids.compactMap { starts[$0] }.max() ?? began
    figures.record(
      .eventsPerSecond,
      Double(Self.burst) / (Double(last - began) / 1e9),
      note: "\(Self.burst) written at once"
    )
  }
}

/// Forty functions, first by themselves, then while two other functions fail and crash.
struct FaultLoad: Sendable {
  var firestore: FirestoreLoad
  var output: String
  var duration: Duration

  /// The value of `SAMPLE_CLOCKS` for the worker.
  static let healthyFunctions = 40
  /// The pause that gives the healthy functions two hundred writes a second.
  private static let pause = TimeAmount.milliseconds(5)
  /// The pause between events of each faulty function.
  ///
  /// One function always fails; the other crashes on every tenth event.
  private static let faultPause = Duration.milliseconds(100)

  /// Measures the time from a write to the start of a healthy function, without and with faults.
  func run(_ figures: Figures) async throws {
    let writes = PacedWrites(
      firestore: firestore,
      output: output,
      collections: (0..<Self.healthyFunctions).map { "clocked\($0)" },
      pause: Self.pause
    )
    try await writes.warmUp()
    try await record(writes, "alone", of: .withoutFaults, figures)
    let faults = Task { try await writeFaults() }
    defer { faults.cancel() }
    try await record(writes, "beside", of: .hearth, figures)
  }

  private func record(
    _ writes: PacedWrites,
    _ name: String,
    of subject: Subject,
    _ figures: Figures
  ) async throws {
    let times = try await writes.measure(name, for: duration).sinceSent
    let count = "\(times.count) events of \(Self.healthyFunctions) functions"
    for (percentile, share) in [(50, 0.5), (99, 0.99)] {
      figures.record(
        .healthyStartMilliseconds(percentile: percentile),
        of: subject,
        times.milliseconds(share),
        note: "\(count); longest \(Figures.text(times.milliseconds(1)))"
      )
    }
  }

  private func writeFaults() async throws {
    for number in 0... {
      try await firestore.createOne("failAlways/\(number)")
      try await firestore.createOne("crashOnTenth/\(number)")
      try await Task.sleep(for: Self.faultPause)
    }
  }
}

/// The rate at which a server delivers the events queued before it started.
struct DrainLoad: Sendable {
  /// The number of events, which is the maximum that may be pending.
  static let events = 100_000
  private static let timeMax = Duration.seconds(180)

  var output: String
  var server: Int32

  /// Waits for the last event's function and records the rate since the first one.
  func run(_ figures: Figures) async throws {
    let (starts, use) = try await ProcessorUse.counted(server) {
      var starts: [String: Int64] = [:]
      try await poll(within: Self.timeMax, every: .milliseconds(500), "the queued events") {
        starts = FunctionStarts.read(from: output)
        return starts.count >= Self.events
      }
      return starts
    }
    guard let first = starts.values.min(), let last = starts.values.max() else { return }
    figures.record(
      .drainedPerSecond,
      Double(Self.events) / (Double(last - first) / 1e9),
      note: "\(Self.events) events queued before the start, durable"
    )
    figures.record(use, for: .queuedEvent, count: Self.events)
  }
}
