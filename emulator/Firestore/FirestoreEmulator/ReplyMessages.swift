import DocumentStore

/// The messages of a streamed reply, each made when it is taken.
///
/// Making them cannot fail: what can is done before the first one.
package struct ReplyMessages<Message>: Sequence, Sendable {
  /// The transaction that the call began; it must end when the reply does not reach its client.
  let newTransaction: TransactionID?
  private let count: Int
  private let make: @Sendable (Int) -> Message

  /// As many messages as `count`; `make` gets their numbers from 0 on, in order.
  init(
    count: Int,
    newTransaction: TransactionID? = nil,
    make: @escaping @Sendable (Int) -> Message
  ) {
    self.newTransaction = newTransaction
    self.count = count
    self.make = make
  }

  /// The messages from the first on.
  package func makeIterator() -> some IteratorProtocol<Message> {
    (0..<count).lazy.map(make).makeIterator()
  }
}
