import DocumentModel
import Testing

@testable import TriggerDelivery

@Suite("All functions' backlogs")
struct DispatchStateTests {
  private let now = Timestamp(microseconds: 1_800_000_000_000_000)

  private func later(_ seconds: Int) -> Timestamp { now.advanced(by: .seconds(seconds)) }

  @Test("The next look is at the earliest time of any function, also one that was noted last")
  func earliest() {
    var state = DispatchState(heldBytesMax: 1 << 20, startsByItself: true)
    state.change("f") { $0.noteDue(later(600)) }
    let first = state.look(now: now).nextTime
    state.change("f") { $0.noteDue(later(1)) }
    let second = state.look(now: now).nextTime
    state.change("g") { $0.noteDue(later(30)) }
    let third = state.look(now: now).nextTime

    #expect([first, second, third] == [later(600), later(1), later(1)])
    #expect(state.look(now: later(1)).loads.map(\.function) == ["f"])
  }

  @Test("Reads are bounded, and every function has its turn")
  func reads() {
    var state = DispatchState(heldBytesMax: 1 << 20, startsByItself: true)
    for number in 0..<20 { state.change("f\(number)") { $0.noteMore() } }
    var read: Set<String> = []
    while read.count < 20 {
      let loads = state.look(now: now).loads
      #expect(!loads.isEmpty && loads.count <= 4)
      for load in loads {
        read.insert(load.function)
        _ = state.loaded(load, DeliveryStore.Loaded())
      }
      if loads.isEmpty { break }
    }
    #expect(read.count == 20)
  }

  private func candidates(_ function: String) -> [DeliveryStore.Candidate] {
    (1...20).map { number in
      DeliveryStore.Candidate(
        delivery: .sample(sequence: number, function: function, at: now),
        event: nil,
        bytes: 100
      )
    }
  }

  @Test("Where the window's bytes are used up nothing is read until some of it has ended")
  func readsWithinRoom() throws {
    var state = DispatchState(heldBytesMax: 400, startsByItself: true)
    state.add(candidates("f"), of: "f")
    state.change("f") { $0.inserted(candidates("f").map(\.delivery)) }
    let work = state.look(now: now)
    #expect(work.starts.count == 1 && work.loads.isEmpty)

    var delivery = try #require(work.starts.first).delivery
    delivery.end(.succeeded, nil, now)
    let end = try #require(state.change("f") { $0.finish(delivery) })
    state.change("f") { $0.saved(end) }
    #expect(state.look(now: now).loads.count == 1)
  }

  @Test("One function's large events leave room for the others'")
  func room() {
    var state = DispatchState(heldBytesMax: 1000, startsByItself: false)
    for function in ["f", "g", "h"] { state.add(candidates(function), of: function) }
    let held = ["f", "g", "h"].map { state.backlogs[$0]?.heldBytes ?? 0 }

    #expect(held == [200, 200, 200])
  }
}
