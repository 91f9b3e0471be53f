import Foundation
import FirestoreProtos
import NIOCore
import NIOPosix
import SwiftProtobuf

/// Messages that Psst's `embedMessage` makes searchable, one after another.
///
/// The embedding needs no account, so the time is that of delivery, worker and index.
struct SearchLoad: Sendable {
  var firestore: FirestoreLoad
  var vectors: Address

  private static let foundTimeMax = Duration.seconds(30)
  private static let chatID = "bench"
  private static let chat = "chats/\(chatID)"

  /// Writes messages for `duration`, each once the previous one is found.
  func run(_ duration: Duration, _ figures: Figures) async throws {
    try await firestore.createOne("users/user-0")
    try await firestore.create(
      at: Self.chat,
      [
        "members": .with { $0.arrayValue.values = [.with { $0.stringValue = "user-0" }] },
        "isGroupChat": .with { $0.booleanValue = true },
      ]
    )
    _ = try await timeUntilFound("warm")
    var times: [Int64] = []
    let end = ContinuousClock.now + duration
    while ContinuousClock.now < end { times.append(try await timeUntilFound("m\(times.count)")) }
    let result = Measurement(nanoseconds: times, duration: duration)
    for (percentile, share) in [(50, 0.5), (99, 0.99)] {
      figures.record(
        .searchableMilliseconds(percentile: percentile),
        result.milliseconds(share),
        note: "\(times.count) messages, one after the other"
      )
    }
  }

  private func timeUntilFound(_ id: String) async throws -> Int64 {
    let sent = NIODeadline.now()
    try await firestore.create(
      at: "\(Self.chat)/messages/\(id)",
      [
        "text": .with { $0.stringValue = "The knee is better today, I walked \(id)." },
        "senderID": .with { $0.stringValue = "user-0" },
        "timestamp": .with { $0.timestampValue.seconds = 1_700_000_000 },
      ]
    )
    let giveUp = ContinuousClock.now + Self.foundTimeMax
    while try await !isFound(id) {
      guard ContinuousClock.now < giveUp else {
        throw BenchmarkError("The message \(id) was not found in time; see embedMessage's log.")
      }
    }
    return (NIODeadline.now() - sent).nanoseconds
  }

  /// Asks the index once; the caller polls without a pause, as a look is far faster than indexing.
  private func isFound(_ id: String) async throws -> Bool {
    let loop = Load.eventLoops.next()
    // The id of a message's vector is `MessagePlace.key` of Psst, the message's chat before its id.
    let path = "/ix/chat-messages/vectors/fetch?ids=\(Self.chatID)%23\(id)"
    let reply = HTTP1Connection.connect(to: vectors, method: "GET", path: path, on: loop)
      .flatMap { connection in
        let promise = loop.makePromise(of: ByteBuffer.self)
        connection.send(ByteBuffer()) { reply in
          promise.completeWith(reply)
          connection.close()
        }
        return promise.futureResult
      }
    // Until the first message there is no index, and the status is 404.
    guard let body = try? await reply.get() else { return false }
    return String(buffer: body).contains("\"\(Self.chatID)#\(id)\"")
  }
}
