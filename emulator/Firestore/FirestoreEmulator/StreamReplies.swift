import DocumentStore
package import FirestoreWire

/// The responses of a streaming call, each created when it is taken.
///
/// Creating them cannot fail: every operation that can fail happens before the first one.
package struct StreamReplies<Reply>: Sequence, Sendable {
  /// The transaction that the call began; it must end if the response does not reach its client.
  let newTransaction: TransactionID?
  /// The bytes in memory from which the responses are created, if they are worth counting.
  let heldBytes: Int
  /// The part of `heldBytes` that stays in memory for later responses of the call.
  let keptBytes: Int
  private let count: Int
  private let make: @Sendable (Int) -> Reply

  /// Creates `count` responses; `make` receives their indexes in order, starting with 0.
  init(
    count: Int,
    newTransaction: TransactionID? = nil,
    heldBytes: Int = 0,
    keptBytes: Int = 0,
    make: @escaping @Sendable (Int) -> Reply
  ) {
    self.newTransaction = newTransaction
    self.heldBytes = heldBytes
    self.keptBytes = keptBytes
    self.count = count
    self.make = make
  }

  package func makeIterator() -> some IteratorProtocol<Reply> {
    (0..<count).lazy.map(make).makeIterator()
  }
}

extension StreamReplies where Reply: WireReply {
  /// The responses as protobuf messages.
  package var protos: StreamReplies<Reply.Proto> {
    StreamReplies<Reply.Proto>(
      count: count,
      newTransaction: newTransaction,
      heldBytes: heldBytes,
      keptBytes: keptBytes
    ) { [make] in
      make($0).proto
    }
  }
}
