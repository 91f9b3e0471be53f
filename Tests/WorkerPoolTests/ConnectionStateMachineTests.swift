import NIOCore
import Testing

@testable import WorkerPool

@Suite("Connection state machine")
struct ConnectionStateMachineTests {
  private func head(_ status: Int = 200, length: Int?, keepAlive: Bool = true)
    -> ConnectionStateMachine.Head
  {
    ConnectionStateMachine.Head(
      statusCode: status,
      contentLength: length,
      isKeepAlive: keepAlive
    )
  }

  private func busy() -> ConnectionStateMachine {
    var machine = ConnectionStateMachine(wholeBytesMax: 10)
    _ = machine.start()
    return machine
  }

  @Test("A reply announced as small is handed over whole, and the connection is free again")
  func whole() {
    var machine = busy()

    #expect(machine.head(head(length: 4)) == .keep)
    #expect(machine.body(ByteBuffer(string: "ab")) == .none)
    #expect(machine.body(ByteBuffer(string: "cd")) == .none)
    let end = machine.end()
    #expect(end.action == .deliverWhole(ByteBuffer(string: "abcd")))
    #expect(end.isReusable)
    #expect(machine.isIdle)
  }

  @Test("A long reply, or one of unknown length, is streamed", arguments: [11, nil])
  func streamed(length: Int?) {
    var machine = busy()

    #expect(machine.head(head(length: length)) == .deliver)
    #expect(machine.body(ByteBuffer(string: "ab")) == .forward(ByteBuffer(string: "ab")))
    let end = machine.end()
    #expect(end.action == .finishStream)
  }

  @Test("A connection that the worker closes after its reply is not used again")
  func noKeepAlive() {
    var machine = busy()
    _ = machine.head(head(length: 0, keepAlive: false))

    let end = machine.end()
    #expect(!end.isReusable)
    #expect(!machine.isIdle)
    #expect(machine.start() == false)
  }

  @Test("An interim reply is not the reply")
  func interim() {
    var machine = busy()

    #expect(machine.head(head(100, length: nil)) == .ignore)
    #expect(machine.head(head(204, length: nil)) == .keep)
    let end = machine.end()
    #expect(end.action == .deliverWhole(ByteBuffer()))
  }

  @Test("A connection takes one request at a time")
  func oneAtATime() {
    var machine = ConnectionStateMachine(wholeBytesMax: 10)

    #expect(machine.start() == true)
    #expect(machine.start() == false)
  }

  @Test("A cancelled request closes its half; the worker's answer or its end settles it")
  func cancelled() {
    var answered = busy()
    #expect(answered.cancel() == .halfClose)
    #expect(answered.cancel() == .none)
    #expect(answered.head(head(length: 3)) == .ignore)
    #expect(answered.body(ByteBuffer(string: "abc")) == .none)
    let end = answered.end()
    #expect(end.action == .finishAbandoned)
    #expect(answered.closed() == .none)

    var closed = busy()
    _ = closed.cancel()
    #expect(closed.closed() == .finishAbandoned)
  }

  @Test("A connection that ends before the reply breaks the invocation; an idle one breaks nothing")
  func closed() {
    var awaiting = busy()
    #expect(awaiting.closed() == .breakInvocation)

    var streaming = busy()
    _ = streaming.head(head(length: nil))
    #expect(streaming.closed() == .breakInvocation)
    #expect(streaming.closed() == .none)

    var idle = ConnectionStateMachine(wholeBytesMax: 10)
    #expect(idle.closed() == .none)
  }
}
