import FlowControl
import Testing

@Suite("Bounded queue")
struct BoundedQueueTests {
  private static let entry = BoundedQueue<Int>.entryBytes

  private func rest<Element>(of queue: inout BoundedQueue<Element>) -> [BoundedQueue<Element>.Item]
  {
    var items: [BoundedQueue<Element>.Item] = []
    while let item = queue.popFirst() { items.append(item) }
    return items
  }

  @Test("Elements within the bound come out in their order")
  func order() {
    var queue = BoundedQueue<Int>(bytesMax: 3 * (10 + Self.entry))
    for number in 1...3 { queue.append(number, bytes: 10) }

    #expect(rest(of: &queue) == [.element(1), .element(2), .element(3)])
    #expect(queue.isEmpty && queue.bytes == 0)
  }

  @Test("The oldest make room until the queue is half empty, and are counted before the rest")
  func overflow() {
    var queue = BoundedQueue<Int>(bytesMax: 4 * (10 + Self.entry))
    for number in 1...5 { queue.append(number, bytes: 10) }

    #expect(rest(of: &queue) == [.gap(3), .element(4), .element(5)])
    #expect(queue.isEmpty)
  }

  @Test("Unread gaps become one")
  func gapsJoin() {
    var queue = BoundedQueue<Int>(bytesMax: 2 * (10 + Self.entry))
    for number in 1...6 { queue.append(number, bytes: 10) }

    #expect(queue.popFirst() == .gap(4))
    #expect(queue.popFirst() == .element(5))
  }

  @Test("The newest element stays though it alone is beyond the bound")
  func newestStays() {
    var queue = BoundedQueue<Int>(bytesMax: 100)
    queue.append(1, bytes: 10)
    queue.append(2, bytes: 1_000_000)

    #expect(rest(of: &queue) == [.gap(1), .element(2)])
    #expect(queue.bytes == 0)
  }

  @Test("Elements without bytes of their own are bounded, too")
  func entriesCount() {
    var queue = BoundedQueue<Int>(bytesMax: 1000)
    for number in 0..<100_000 { queue.append(number, bytes: 0) }

    #expect(queue.bytes <= 1000)
    #expect(rest(of: &queue).count <= 1000 / Self.entry + 1)
  }

  @Test("A stream reports what a slow reader has lost, and ends after what was sent")
  func stream() async {
    let (stream, source) = BoundedStream<Int>.make(bytesMax: 4 * Self.entry) { -$0 }
    for number in 1...5 { source.send(number, bytes: 0) }
    source.finish()
    var read: [Int] = []
    for await number in stream { read.append(number) }

    #expect(read == [-3, 4, 5])
  }

  @Test("A reader waits for what is sent later")
  func streamWaits() async {
    let (stream, source) = BoundedStream<Int>.make(bytesMax: 1000)
    let (read, reader) = AsyncStream.makeStream(of: Int.self)
    async let reading: Void = {
      for await number in stream { reader.yield(number) }
      reader.finish()
    }()
    var numbers = read.makeAsyncIterator()
    for number in 1...100 {
      source.send(number, bytes: 0)
      #expect(await numbers.next() == number)
    }
    source.finish()
    await reading
    #expect(await numbers.next() == nil)
  }

  @Test("The source learns that its reader has left")
  func readerLeaves() async {
    await confirmation { left in
      let (stream, source) = BoundedStream<Int>.make(bytesMax: 1000)
      source.onEnd { left() }
      source.send(1, bytes: 0)
      let reader = Task { for await _ in stream { break } }
      await reader.value
      let cancelled = Task { for await _ in stream {} }
      cancelled.cancel()
      await cancelled.value
    }
  }
}
