import Foundation
import NIOCore
import NIOPosix

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The folder that `hearth start` finds its functions' settings in.
struct FunctionsProject: Sendable {
  let folder: String
  /// The file that the sample triggers write to.
  var output: String { folder + "/output" }

  /// Writes the folder.
  init(folder: String) throws {
    self.folder = folder
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try #"{"functions": {"source": "."}}"#.write(
      toFile: folder + "/firebase.json",
      atomically: true,
      encoding: .utf8
    )
    try "SAMPLE_OUTPUT=\(output)\n".write(
      toFile: folder + "/.env",
      atomically: true,
      encoding: .utf8
    )
  }
}

/// Waits by looking again.
private func poll(
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

/// Calls of one callable, or of whatever answers a POST.
struct CallableLoad: Sendable {
  var address: Address
  var path: String

  private static let body = ByteBuffer(
    string: #"{"data":{"text":"The knee is better today.","numbers":[1,2,3],"isRead":false}}"#
  )

  /// Runs the load.
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

  /// Asks until there is an answer that is no failure.
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
      // Until then the answer is 404, which is what we wait out.
      return (try? await reply.get()) != nil
    }
  }
}

/// Writes at an even pace, and what the function `clockWrite` says about when it began.
///
/// The worker's times and ours are of the one clock of the machine that counts from its start.
struct TriggerLoad: Sendable {
  var firestore: FirestoreLoad
  var output: String
  var duration: Duration

  /// A hundred writes a second: far below what delivery can take, so that no event waits for another.
  private static let pause = TimeAmount.milliseconds(10)
  /// Events written at once to see how many are delivered in a second.
  private static let burst = 1000
  private static let deliveryTimeMax = Duration.seconds(30)
  /// Ten times a second an event whose function always fails, and of these each tenth traps instead.
  private static let faultPause = Duration.milliseconds(100)
  private static let trapEvery = 10

  /// Measures the time from a write to its function's start, the rate of many, and that time again
  /// while two other functions fail and trap.
  func run(_ figures: Figures) async throws {
    try await firestore.createOne("clocked/warm")
    try await wait(for: ["warm"])
    let (sinceSent, sinceAcknowledged) = try await measureLatency("paced")
    for (percentile, share) in [(50, 0.5), (99, 0.99)] {
      let after = Figures.text(sinceAcknowledged.milliseconds(share))
      figures.record(
        .functionStartMilliseconds(percentile: percentile),
        sinceSent.milliseconds(share),
        note: "from sending the write; from its acknowledgement \(after)"
      )
    }
    try await measureRate(figures)
    let faults = Task { try await writeFaults() }
    defer { faults.cancel() }
    let (besideFaults, _) = try await measureLatency("beside")
    figures.record(
      .functionStartBesideFaultsMilliseconds,
      besideFaults.milliseconds(0.99),
      note: "each second 9 events of another function fail, and 1 of a third traps"
    )
  }

  private func writeFaults() async throws {
    for number in 0... {
      let function = number.isMultiple(of: Self.trapEvery) ? "crashOnce" : "failAlways"
      try await firestore.createOne("\(function)/\(number)")
      try await Task.sleep(for: Self.faultPause)
    }
  }

  /// The times from sending a write, and from its acknowledgement, to its function's start.
  private func measureLatency(
    _ name: String
  ) async throws -> (sinceSent: Measurement, sinceAcknowledged: Measurement) {
    let writes = try await pacedWrites(name)
    let starts = try await wait(for: writes.keys)
    func times(since time: (Write) -> Int64) -> Measurement {
      Measurement(
        nanoseconds: writes.compactMap { id, write in starts[id].map { $0 - time(write) } },
        duration: duration
      )
    }
    return (times { $0.sent }, times { $0.acknowledged })
  }

  private func measureRate(_ figures: Figures) async throws {
    let ids = (0..<Self.burst).map { "burst\($0)" }
    let began = Int64(NIODeadline.now().uptimeNanoseconds)
    try await firestore.createAll(ids.map { "clocked/\($0)" })
    let starts = try await wait(for: ids)
    let last = ids.compactMap { starts[$0] }.max() ?? began
    figures.record(
      .eventsPerSecond,
      Double(Self.burst) / (Double(last - began) / 1e9),
      note: "\(Self.burst) written at once"
    )
  }

  /// When a write was sent and acknowledged, in nanoseconds.
  private struct Write: Sendable {
    var sent: Int64
    var acknowledged: Int64
  }

  private func pacedWrites(_ name: String) async throws -> [String: Write] {
    let loop = Load.eventLoops.next()
    let count = Int(duration / .milliseconds(10))
    return try await firestore.connectForCommits(on: loop).flatMap { connection in
      let promise = loop.makePromise(of: [String: Write].self)
      promise.failing(at: .now() + TimeAmount(duration) * 2 + .seconds(10))
      var writes: [String: Write] = [:]
      func write(_ number: Int) {
        guard number < count else {
          connection.close()
          return promise.succeed(writes)
        }
        let id = "\(name)\(number)"
        let body: ByteBuffer
        do {
          body = try firestore.creation(of: "clocked/\(id)", number)
        } catch {
          return promise.fail(error)
        }
        let sent = NIODeadline.now()
        connection.send(body) { reply in
          if case .failure(let error) = reply { return promise.fail(error) }
          writes[id] = Write(
            sent: Int64(sent.uptimeNanoseconds),
            acknowledged: Int64(NIODeadline.now().uptimeNanoseconds)
          )
          loop.assumeIsolated().scheduleTask(deadline: sent + Self.pause) { write(number + 1) }
        }
      }
      write(0)
      return promise.futureResult
    }.get()
  }

  /// The first start of each function, in nanoseconds, once all are there.
  @discardableResult
  private func wait(for ids: some Collection<String>) async throws -> [String: Int64] {
    var starts: [String: Int64] = [:]
    try await poll(within: Self.deliveryTimeMax, "\(ids.count) deliveries") {
      starts = startTimes()
      return ids.allSatisfy { starts[$0] != nil }
    }
    return starts
  }

  private func startTimes() -> [String: Int64] { Self.startTimes(in: output) }

  /// When the function `clockWrite` first began for each document, in nanoseconds.
  static func startTimes(in output: String) -> [String: Int64] {
    // The first function to run makes the file.
    let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
    let records = text.split(separator: "\n").compactMap { line -> (String, Int64)? in
      let words = line.split(separator: " ")
      guard words.count >= 3, words[0] == "clockWrite", let time = Int64(words[1]) else {
        return nil
      }
      return (String(words[2]), time)
    }
    return Dictionary(records, uniquingKeysWith: min)
  }
}

/// How fast a server delivers what has gathered before it started.
struct DrainLoad: Sendable {
  /// As many as may be pending at all.
  static let events = 100_000
  private static let timeMax = Duration.seconds(180)

  var output: String

  /// Waits for the last event's function and records the rate since the first.
  func run(_ figures: Figures) async throws {
    var starts: [String: Int64] = [:]
    try await poll(within: Self.timeMax, every: .milliseconds(500), "the queued events") {
      starts = TriggerLoad.startTimes(in: output)
      return starts.count >= Self.events
    }
    guard let first = starts.values.min(), let last = starts.values.max() else { return }
    figures.record(
      .drainedPerSecond,
      Double(Self.events) / (Double(last - first) / 1e9),
      note: "\(Self.events) events queued before the start, durable"
    )
  }
}
