import Foundation
import NIOCore
import NIOPosix

/// Writes at an even pace, and what the function `clockWrite` says about when it began.
///
/// The worker's times and ours are of the one clock of the machine that counts from its start.
struct PacedWrites: Sendable {
  var firestore: FirestoreLoad
  var output: String
  /// Each write goes to the next one; every one has a function of its own.
  var collections = ["clocked"]
  /// A hundred writes a second unless said otherwise: far below what delivery can take, so that no event
  /// waits for another.
  var pause = TimeAmount.milliseconds(10)

  /// How long functions took to begin.
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

  /// Writes for so long; the documents' names begin with `name`.
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

  /// When a write was sent and acknowledged, in nanoseconds.
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

/// What the functions `clockWrite` have recorded.
enum FunctionStarts {
  private static let timeMax = Duration.seconds(30)

  /// The first start of each document's function, in nanoseconds, once all are there.
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

  /// When the function `clockWrite` first began for each document, in nanoseconds.
  static func read(from output: String) -> [String: Int64] {
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
