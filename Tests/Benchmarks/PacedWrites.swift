import Foundation
import NIOCore
import NIOPosix

/// Writes at an even pace, compared with the start times that the function `clockWrite` records.
///
/// The worker and the benchmark use the same monotonic clock of the machine.
struct PacedWrites: Sendable {
  var firestore: FirestoreLoad
  var output: String
  /// The collections, written in turn; each has its own function.
  var collections = ["clocked"]
  /// The pause between writes: by default a hundred a second.
  ///
  /// That is far below the possible delivery rate, so no event waits for another.
  var pause = TimeAmount.milliseconds(10)

  /// The times until the functions started.
  struct Times: Sendable {
    var sinceSent: Measurement
    var sinceAcknowledged: Measurement
  }

  /// Waits until each function has run once.
  func warmUp() async throws {
    let ids = collections.indices.map { "warm\($0)" }
    try await firestore.createAll(zip(collections, ids).map { "\($0)/\($1)" })
    _ = try await FunctionStarts.wait(for: ids, in: output)
  }

  /// Writes for `duration`; the documents' IDs begin with `name`.
  func measure(_ name: String, for duration: Duration) async throws -> Times {
    let writes = try await write(name, for: duration)
    let starts = try await FunctionStarts.wait(for: writes.keys, in: output)
    func times(since time: (Write) -> Int64) -> Measurement {
      Measurement(
        nanoseconds: writes.compactMap { id, write in starts[id].map { $0 - time(write) } },
        duration: duration
      )
    }
    return Times(
      sinceSent: times { $0.sent },
      sinceAcknowledged: times { $0.acknowledged }
    )
  }

  /// The times at which a write was sent and acknowledged, in nanoseconds.
  private struct Write: Sendable {
    var sent: Int64
    var acknowledged: Int64
  }

  private func write(_ name: String, for duration: Duration) async throws -> [String: Write] {
    let loop = Load.eventLoops.next()
    let count = Int(duration / .nanoseconds(pause.nanoseconds))
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
          body = try firestore.creation(
            of: "\(collections[number % collections.count])/\(id)",
            number
          )
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
          loop.assumeIsolated().scheduleTask(deadline: sent + pause) { write(number + 1) }
        }
      }
      write(0)
      return promise.futureResult
    }.get()
  }
}

/// The starts recorded by the `clockWrite` functions.
enum FunctionStarts {
  private static let timeMax = Duration.seconds(30)

  /// Waits until every document has a start, and returns the first start of each in nanoseconds.
  static func wait(
    for ids: some Collection<String>,
    in output: String
  ) async throws -> [String: Int64] {
    var starts: [String: Int64] = [:]
    try await poll(within: timeMax, "\(ids.count) deliveries") {
      starts = read(from: output)
      return ids.allSatisfy { starts[$0] != nil }
    }
    return starts
  }

  /// Returns the first recorded start for each document, in nanoseconds.
  static func read(from output: String) -> [String: Int64] {
    // The file does not exist until the first function runs.
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
