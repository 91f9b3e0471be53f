import DocumentModel
import FirestoreProtos
import FirestoreWire
import StatusCodes
import SwiftProtobuf
import Testing
import TestSupport

@Suite("Replies with documents")
struct WireReplyTests {
  private func document(_ fields: MapValue, at time: Int64 = 1) -> FirestoreDocument {
    FirestoreDocument(
      name: DocumentName(
        database: DatabaseName(project: "demo-psst", database: "e\u{301}"),
        path: ResourcePath(["c", "ä", "__id7__", "ä"])
      ),
      fields: fields,
      createTime: Timestamp(microseconds: time),
      updateTime: Timestamp(microseconds: 1_700_000_000_000_001)
    )
  }

  /// Compares the serialized forms, because NaNs in messages are never equal.
  private func expectSame(_ reply: some WireReply) throws {
    var options = BinaryEncodingOptions()
    options.useDeterministicOrdering = true
    let message = reply.proto
    let read = try type(of: message).init(serializedBytes: reply.bytes)
    let expected: [UInt8] = try message.serializedBytes(options: options)
    #expect(try read.serializedBytes(options: options) == expected)
    #expect(reply.bytes.count == expected.count)
  }

  @Test("The bytes of a query's reply are those of its message, for random documents")
  func documents() throws {
    var samples = Samples(generator: .forTest())
    for round in 0..<500 {
      var reply = QueryReply()
      reply.document = document(samples.fields(), at: [0, -1, 1_000_000][round % 3])
      reply.readTime = Timestamp(microseconds: Int64(round) * 1_000_000)
      try expectSame(reply)
      if let document = reply.document { try expectSame(DocumentReply(document)) }
    }
  }

  @Test("The bytes of a listener's replies are those of their messages")
  func listening() throws {
    let document = document(["a": .integer(1)])
    let time = Timestamp(microseconds: 1_700_000_000_000_001)
    let ids: [Int32] = [1, 2, 300, .max]
    let replies: [ListenReply] = [
      .target(.noChange, [], token: [1, 2], readTime: time), .target(.add, [1]),
      .target(.remove, ids, cause: StatusError(.permissionDenied, "nö")),
      .target(.current, [2], token: [], readTime: time), .target(.reset, [7]),
      .document(
        document,
        encoded: ListenReply.encode(document),
        targets: ids,
        removedTargets: []
      ),
      .document(
        document,
        encoded: ListenReply.encode(document),
        targets: [],
        removedTargets: ids
      ),
      .deleted(document.name, removedTargets: [4], readTime: time),
      .removed(document.name, removedTargets: ids, readTime: time),
      .filter(3, count: 0, bitmap: [], padding: 0, hashCount: 0),
      .filter(3, count: 500, bitmap: [1, 255, 0], padding: 5, hashCount: 20),
    ]
    for reply in replies { try expectSame(reply) }
  }

  @Test(
    "Lengths of one to four bytes are written as such",
    arguments: [
      0, 1, 100, 126, 127, 128, 129, 16_300, 16_383, 16_384, 16_500, 2_097_151, 2_097_152,
    ]
  )
  func lengths(count: Int) throws {
    var reply = QueryReply()
    reply.document = document([
      "a": .string(String(repeating: "x", count: count)),
      "b": .map(["c": .bytes([UInt8](repeating: 7, count: count)), "d": .null]),
    ])
    try expectSame(reply)
  }

  @Test("Replies that carry no document are written as their messages too")
  func others() throws {
    var query = QueryReply()
    try expectSame(query)
    query.transaction = [1, 2, 255]
    query.skippedResults = .max
    try expectSame(query)

    var lookUp = LookUpReply()
    try expectSame(lookUp)
    lookUp.transaction = [0]
    lookUp.readTime = Timestamp(microseconds: 999_999)
    try expectSame(lookUp)
    lookUp.result = .missing(document([:]).name)
    try expectSame(lookUp)
    lookUp.result = .found(document(["a": .boolean(false)]))
    try expectSame(lookUp)
  }
}
