import TestSupport
import Testing

@testable import WorkerPool

@Suite("Gate of starts")
struct StartGateTests {
  /// A start gate for the functions in `serving`.
  private func gate(
    startingMax: Int = 1_000,
    liveMax: Int,
    serving: [String] = ["a", "b", "c", "many", "one", "slow", "quick"]
  ) -> StartGate<Int, String> {
    var gate = StartGate<Int, String>(startingMax: startingMax, liveMax: liveMax)
    for owner in serving { gate.set(owner, .serving) }
    return gate
  }

  /// Requests `count` workers, numbered from `first`; returns how many may start.
  private func request(
    _ count: Int,
    from first: Int,
    of owner: String,
    _ gate: inout StartGate<Int, String>
  ) -> Int {
    (first..<first + count).reduce(0) { $0 + request(&gate, $1, of: owner).count }
  }

  private func request(
    _ gate: inout StartGate<Int, String>,
    _ worker: Int,
    of owner: String = "a",
    at now: Duration = .zero
  ) -> [Int] {
    gate.request(worker, of: owner, now: now)
  }

  @Test("So many start at once, in the order in which they asked")
  func starting() {
    var gate = gate(startingMax: 2, liveMax: 10, serving: ["a"])

    #expect(request(&gate, 1) == [1])
    #expect(request(&gate, 2) == [2])
    #expect(request(&gate, 3) == [])
    #expect(request(&gate, 4) == [])
    #expect(gate.ready(2, now: .zero) == [3])
    #expect(gate.exited(1, now: .zero) == [4])
  }

  @Test("When too many live, the next waits until one has exited")
  func live() {
    var gate = gate(startingMax: 2, liveMax: 1)
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
    var gate = gate(startingMax: 2, liveMax: 2)
    _ = request(&gate, 1)
    _ = request(&gate, 2)
    _ = request(&gate, 3)
    gate.yields(1)

    #expect(gate.sharesMissing == 1)
    #expect(gate.placesUnassigned == 0)
    gate.leaves(2)
    #expect(gate.placesMissing + gate.sharesMissing == 0)
    gate.leaves(1)
    #expect(gate.exited(2, now: .zero) == [3])
    _ = request(&gate, 4)
    #expect(gate.placesMissing == 0, "One that was done goes")
  }

  @Test("Who gives up waiting is not started")
  func givesUp() {
    var gate = gate(startingMax: 1, liveMax: 10)
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
    var gate = gate(startingMax: 1, liveMax: 10, serving: ["many", "one"])
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

  @Test("Slow starts do not delay the starts of other functions")
  func slowStarts() {
    var gate = gate(startingMax: 1, liveMax: 10)
    _ = request(&gate, 1, of: "slow")
    _ = request(&gate, 2, of: "quick")

    #expect(gate.wake(now: .zero) == .seconds(2))
    #expect(gate.admit(now: .seconds(1)) == [])
    #expect(gate.admit(now: .seconds(2)) == [2])
    #expect(gate.wake(now: .seconds(2)) == nil)
  }

  @Test("Who has two more than one who waits has to give one up")
  func ownerWithMostWorkers() {
    var gate = gate(startingMax: 10, liveMax: 3, serving: ["a", "b", "c"])
    _ = request(&gate, 1, of: "a")
    _ = request(&gate, 2, of: "a")
    _ = request(&gate, 3, of: "b")
    #expect(gate.ownerWithMostWorkers == nil)

    _ = request(&gate, 4, of: "b")
    #expect(gate.ownerWithMostWorkers == nil, "It would only change whose turn it is")
    gate.withdraw(4, of: "b")
    _ = request(&gate, 4, of: "c")
    #expect(gate.ownerWithMostWorkers == "a")
    gate.leaves(1)
    #expect(gate.exited(1, now: .zero) == [4])
    _ = request(&gate, 5, of: "a")
    #expect(gate.ownerWithMostWorkers == nil, "All have one")
  }

  // MARK: First places

  @Test("A function that asks for all places leaves the first ones to the others")
  func firstPlaces() {
    var gate = gate(liveMax: 200, serving: ["hang", "echo", "late"])

    #expect(request(300, from: 0, of: "hang", &gate) == 177, "176 beyond its first")
    #expect(gate.lacksPlace("hang"))
    #expect(request(&gate, 1_000, of: "echo") == [1_000])
    #expect(request(&gate, 1_001, of: "echo") == [], "Its second is one too many, too")
    #expect(request(&gate, 1_002, of: "late") == [1_002])
    #expect(gate.firstsMissing == 0 && gate.sharesMissing == 124)
  }

  @Test("Fifty functions of four leave a place for each that has none")
  func fiftyFunctions() {
    let fifty = (0..<50).map { "f\($0)" }
    var gate = gate(liveMax: 200, serving: fifty + ["echo"])
    var started = 0
    for (index, owner) in fifty.enumerated() {
      started += request(4, from: index * 4, of: owner, &gate)
    }

    #expect(started == 50 + 145)
    #expect(request(&gate, 1_000, of: "echo") == [1_000])
    #expect(gate.holders.reduce(0) { $0 + $1.live } == 196, "Four are a deployment's")
  }

  @Test("While functions are no more than first places, every first worker starts at once")
  func everyFirstStarts() {
    var random = SeededGenerator.forTest()
    for _ in 0..<50 {
      let liveMax = Int.random(in: 10...250, using: &random)
      let count = Int.random(in: 1...(liveMax / 2 - liveMax / 50), using: &random)
      let owners = (0..<count).map { "f\($0)" }
      var gate = gate(liveMax: liveMax, serving: owners)
      var live: [String: [Int]] = [:]
      var ownerOf: [Int: String] = [:]
      for worker in 0..<600 {
        let owner = owners[Int.random(in: 0..<min(count, 1 + worker / 10), using: &random)]
        if let gone = live[owner]?.last, Int.random(in: 0..<4, using: &random) == 0 {
          live[owner]?.removeLast()
          for admitted in gate.exited(gone, now: .zero) {
            live[ownerOf[admitted] ?? "", default: []].append(admitted)
          }
          continue
        }
        ownerOf[worker] = owner
        let isFirst = live[owner, default: []].isEmpty
        let admitted = gate.request(worker, of: owner, now: .zero)
        for worker in admitted { live[ownerOf[worker] ?? "", default: []].append(worker) }
        #expect(!isFirst || !live[owner, default: []].isEmpty, "\(liveMax) \(count) \(owner)")
      }
      #expect(live.values.reduce(0) { $0 + $1.count } <= liveMax)
    }
  }

  @Test("With more functions than places, half of these stay for further workers")
  func manyFunctions() {
    let owners = (0..<500).map { "f\($0)" }
    var gate = gate(liveMax: 200, serving: owners)

    #expect(request(300, from: 0, of: "f0", &gate) == 101)
    for index in 1..<500 { _ = request(&gate, 1_000 + index, of: "f\(index)") }
    #expect(gate.firstsMissing == 499 - (200 - 4 - 101))
    #expect(gate.ownerWithMostWorkers == "f0")
  }

  @Test("A deployment finds places that no function that serves may take")
  func deploymentPlaces() {
    let owners = (0..<300).map { "f\($0)" }
    var gate = gate(liveMax: 200, serving: owners)
    for index in 0..<300 { _ = request(&gate, index, of: "f\(index)") }
    for index in 0..<5 { gate.set("new\(index)", .deploying) }

    #expect(gate.firstsMissing == 104)
    for worker in 0..<4 {
      #expect(request(&gate, 1_000 + worker, of: "new\(worker)") == [1_000 + worker])
    }
    #expect(request(&gate, 1_004, of: "new4") == [])
    #expect(gate.exited(0, now: .zero) == [1_004], "It comes before those that serve")
  }

  @Test("An idle first worker of a function makes no place for a second one of another")
  func givesWay() {
    var gate = gate(liveMax: 10, serving: ["hang", "idle", "burst"])
    _ = request(&gate, 1, of: "idle")
    _ = request(3, from: 10, of: "burst", &gate)
    _ = request(20, from: 20, of: "hang", &gate)

    #expect(gate.placesMissing == 0 && gate.sharesMissing > 0 && gate.isShort)
    #expect(!gate.mayGiveWay("idle"))
    #expect(gate.mayGiveWay("burst"), "Its second worker is as good as another's second")
    #expect(!gate.mayGiveWay("hang"), "Nobody else waits")
    gate.leaves(10)
    #expect(gate.exited(10, now: .zero).count == 1)
  }

  @Test("Nothing is short when only the one who has all the further places wants more")
  func aloneInWant() {
    var gate = gate(liveMax: 10, serving: ["hang", "idle"])
    _ = request(&gate, 1, of: "idle")
    _ = request(20, from: 20, of: "hang", &gate)

    #expect(gate.sharesMissing > 0)
    #expect(!gate.isShort)
  }

  @Test("All workers of a replaced version are further ones, and first workers may end them")
  func replaced() {
    var gate = gate(liveMax: 10, serving: ["a1", "b1"])
    #expect(request(9, from: 0, of: "a1", &gate) == 9)
    #expect(request(&gate, 100, of: "b1") == [100])
    for owner in ["a1", "b1"] { gate.set(owner, .replaced) }
    for owner in ["a2", "b2"] { gate.set(owner, .serving) }

    #expect(request(&gate, 200, of: "a2") == [])
    #expect(request(&gate, 201, of: "b2") == [])
    #expect(gate.stays("a1") && gate.ownerWithMostWorkers == nil)
    #expect(gate.firstWorkersUnassigned == 2)
    gate.ends("b1")
    #expect(gate.firstWorkersUnassigned == 1 && !gate.stays("b1"))
    #expect(gate.exited(100, now: .zero) == [200])
    #expect(request(&gate, 202, of: "a2") == [], "Replaced workers hold the further places")
    gate.ends("a1")
    #expect(gate.firstWorkersUnassigned == 0)
    #expect(gate.exited(0, now: .zero) == [201])
  }
}
