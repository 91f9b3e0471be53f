import DocumentStore
package import FirestoreWire

/// The replies of a streaming call, each made when it is taken.
///
/// Making them cannot fail: what can is done before the first one.
package struct StreamReplies<Reply>: Sequence, Sendable {
  /// The transaction that the call began; it must end when the reply does not reach its client.
  let newTransaction: TransactionID?
  /// The bytes in memory from which the replies are made, as far as they are worth counting.
  let heldBytes: Int
  private let count: Int
  private let make: @Sendable (Int) -> Reply

  /// As many replies as `count`; `make` gets their numbers from 0 on, in order.
  init(
    count: Int,
    newTransaction: TransactionID? = nil,
    heldBytes: Int = 0,
    make: @escaping @Sendable (Int) -> Reply
  ) {
    self.newTransaction = newTransaction
    self.heldBytes = heldBytes
    self.count = count
    self.make = make
  }

  /// The replies from the first on.
  package func makeIterator() -> some IteratorProtocol<Reply> {
    (0..<count).lazy.map(make).makeIterator()
  }
}

extension StreamReplies where Reply: WireReply {
  /// The replies as messages.
  package var protos: StreamReplies<Reply.Proto> {
    StreamReplies<Reply.Proto>(
      count: count,
      newTransaction: newTransaction,
      heldBytes: heldBytes
    ) { [make] in
      make($0).proto
    }
  }
}
