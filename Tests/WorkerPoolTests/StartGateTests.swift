import Testing

@testable import WorkerPool

@Suite("Gate of starts")
struct StartGateTests {
  private func request(
    _ gate: inout StartGate<Int>,
    _ worker: Int,
    of owner: String = "a",
    at now: Duration = .zero
  ) -> [Int] {
    gate.request(worker, of: owner, now: now)
  }

  @Test("So many start at once, in the order in which they asked")
  func starting() {
    var gate = StartGate<Int>(startingMax: 2, liveMax: 10)

    #expect(request(&gate, 1) == [1])
    #expect(request(&gate, 2) == [2])
    #expect(request(&gate, 3) == [])
    #expect(request(&gate, 4) == [])
    #expect(gate.ready(2, now: .zero) == [3])
    #expect(gate.exited(1, now: .zero) == [4])
  }

  @Test("When too many live, the next waits until one has exited")
  func live() {
    var gate = StartGate<Int>(startingMax: 2, liveMax: 1)
    _ = request(&gate, 1)
    _ = gate.ready(1, now: .zero)

    #expect(gate.placesMissing == 0)
    #expect(request(&gate, 2) == [])
    #expect(gate.placesMissing == 1)
    gate.leaves(1)
    #expect(gate.placesMissing == 0, "One who leaves makes room for one")
    #expect(gate.exited(1, now: .zero) == [2])
  }

  @Test("A busy worker that is to go gives no place as yet, but is not asked for twice")
  func promised() {
    var gate = StartGate<Int>(startingMax: 2, liveMax: 2)
    _ = request(&gate, 1)
    _ = request(&gate, 2)
    _ = request(&gate, 3)
    gate.yields(1)

    #expect(gate.placesMissing == 1)
    #expect(gate.placesUnpromised == 0)
    gate.leaves(2)
    #expect(gate.placesMissing == 0)
    gate.leaves(1)
    #expect(gate.exited(2, now: .zero) == [3])
    _ = request(&gate, 4)
    #expect(gate.placesMissing == 0, "One that was done goes")
  }

  @Test("Who gives up waiting is not started")
  func givesUp() {
    var gate = StartGate<Int>(startingMax: 1, liveMax: 10)
    _ = request(&gate, 1)
    _ = request(&gate, 2)
    _ = request(&gate, 3)
    gate.withdraw(2, of: "a")
    gate.withdraw(2, of: "a")

    #expect(gate.exited(1, now: .zero) == [3])
    _ = gate.exited(3, now: .zero)
    #expect(request(&gate, 4) == [4])
  }

  @Test("A function that asks for many does not keep another from its first")
  func fair() {
    var gate = StartGate<Int>(startingMax: 1, liveMax: 10)
    for worker in 1...5 { _ = request(&gate, worker, of: "many") }
    _ = request(&gate, 6, of: "one")
    _ = request(&gate, 7, of: "one")

    var order: [Int] = []
    var next = [1]
    while let worker = next.first {
      order.append(worker)
      next = gate.ready(worker, now: .zero)
    }
    #expect(order == [1, 6, 2, 7, 3, 4, 5])
  }

  @Test("Starts that take long hold up nobody else's")
  func slowStarts() {
    var gate = StartGate<Int>(startingMax: 1, liveMax: 10)
    _ = request(&gate, 1, of: "slow")
    _ = request(&gate, 2, of: "quick")

    #expect(gate.wake(now: .zero) == .seconds(2))
    #expect(gate.admit(now: .seconds(1)) == [])
    #expect(gate.admit(now: .seconds(2)) == [2])
    #expect(gate.wake(now: .seconds(2)) == nil)
  }

  @Test("Who has two more than one who waits has to give one up")
  func richest() {
    var gate = StartGate<Int>(startingMax: 10, liveMax: 3)
    _ = request(&gate, 1, of: "a")
    _ = request(&gate, 2, of: "a")
    _ = request(&gate, 3, of: "b")
    #expect(gate.richest == nil)

    _ = request(&gate, 4, of: "b")
    #expect(gate.richest == nil, "It would only change whose turn it is")
    gate.withdraw(4, of: "b")
    _ = request(&gate, 4, of: "c")
    #expect(gate.richest == "a")
    gate.leaves(1)
    #expect(gate.exited(1, now: .zero) == [4])
    _ = request(&gate, 5, of: "a")
    #expect(gate.richest == nil, "All have one")
  }
}
