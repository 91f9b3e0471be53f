/// The messages of a streamed reply, each made when it is taken.
///
/// Work that can fail is done before the first message, so a reply that has begun is completed.
package struct ReplyMessages<Message>: Sequence, Sendable {
  private let count: Int
  private let make: @Sendable (Int) -> Message

  /// As many messages as `count`; `make` gets their numbers from 0 on, in order.
  init(count: Int, make: @escaping @Sendable (Int) -> Message) {
    self.count = count
    self.make = make
  }

  /// The messages from the first on.
  package func makeIterator() -> some IteratorProtocol<Message> {
    (0..<count).lazy.map(make).makeIterator()
  }
}
