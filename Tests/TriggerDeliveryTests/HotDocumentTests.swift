import HTTPMessages
import HTTPTypes
import Invocation
import Manifests
import NIOCore
import StorageEngine
import Synchronization
import Testing
import TestSupport

@testable import TriggerDelivery

/// A document with many events beside other documents of the same function.
@Suite("Documents with many events", .timeLimit(.minutes(5)))
struct HotDocumentTests {
  /// A function that holds the first event of each hot document until it is released.
  private final class HoldingInvoker: FunctionInvoker {
    private struct State {
      var order: [String: [UInt64]] = [:]
      var isOpen = false
      var held: [CheckedContinuation<Void, Never>] = []
      var waiters: [(document: String, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    /// The commit sequences of each document's events, in the order of the runs.
    var order: [String: [UInt64]] { state.withLock { $0.order } }

    func open() {
      let held = state.withLock { state in
        state.isOpen = true
        defer { state.held = [] }
        return state.held
      }
      for continuation in held { continuation.resume() }
    }

    /// Returns once the function runs for a document.
    func waitForRun(of document: String) async {
      await withCheckedContinuation { continuation in
        let isThere = state.withLock { state in
          if state.order[document] != nil { return true }
          state.waiters.append((document, continuation))
          return false
        }
        if isThere { continuation.resume() }
      }
    }

    func invoke(_ request: InvocationRequest) async throws -> Response {
      let document = request.field("ce-document") ?? ""
      let sequence = (request.field("ce-id")?.split(separator: ".").first).flatMap { UInt64($0) }
      let due = state.withLock { state in
        state.order[document, default: []].append(sequence ?? 0)
        let due = state.waiters.filter { $0.document == document }
        state.waiters.removeAll { $0.document == document }
        return due
      }
      for waiter in due { waiter.continuation.resume() }
      if document.hasPrefix("things/hot") {
        await withCheckedContinuation { continuation in
          let isOpen = state.withLock { state in
            if !state.isOpen { state.held.append(continuation) }
            return state.isOpen
          }
          if isOpen { continuation.resume() }
        }
      }
      return Response(head: HTTPResponse(status: .ok), body: .whole(ByteBuffer()))
    }
  }

  @Test(
    "However many events of some documents wait, another document's runs at once, and order holds",
    arguments: [(1, 0), (1, 100_000), (40, 0), (120, 0)]
  )
  func others(hotCount: Int, bytes: Int) async throws {
    let invoker = HoldingInvoker()
    let storage = MemoryStorage()
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    var endpoint = FunctionEndpoint.created("things/{id}")
    endpoint.concurrency = hotCount + 10
    try bench.service.updateFunctions(["f": endpoint])
    let count = bytes > 0 ? 400 : 1200
    try await bench.run { bench in
      for number in 0..<count {
        try await bench.create("things/hot\(number % hotCount)", bytes: bytes)
      }
      try await bench.create("things/other")
      await invoker.waitForRun(of: "things/other")
      #expect(
        invoker.order.filter { $0.key.hasPrefix("things/hot") }.values.allSatisfy { $0.count == 1 }
      )
      invoker.open()
      try await bench.service.waitUntilIdle()

      let order = invoker.order
      #expect(order.values.reduce(0) { $0 + $1.count } == count + 1)
      #expect(order.values.allSatisfy { $0 == $0.sorted() })
      #expect(try await DeliveryStore(storage: storage).count(DeliveryStore.lanes) == 0)
    }
  }

  @Test("The order of a document with many events survives restarts, wherever they strike")
  func restarts() async throws {
    let storage = MemoryStorage()
    let invoker = ScriptedInvoker()
    let count = 500
    // Every hundredth run hangs until its server stops.
    invoker.set("f") { run in
      run.isMultiple(of: 100) ? try await ScriptedInvoker.hanging(run) : .ok
    }
    let writer = DeliveryBench(storage: storage, invoker: invoker)
    for _ in 0..<count { try await writer.create("things/hot") }
    for life in 1...4 {
      let bench = DeliveryBench(storage: storage, invoker: invoker)
      try bench.service.updateFunctions(["f": .created("things/{id}")])
      try await bench.run { _ in
        await invoker.waitForRuns(100 * life)
      } stopping: { bench in
        await bench.clock.waitForSleepers()
        bench.clock.advance(by: .seconds(2))
      }
    }
    invoker.set("f") { _ in .ok }
    let last = DeliveryBench(storage: storage, invoker: invoker)
    try last.service.updateFunctions(["f": .created("things/{id}")])
    try await last.run { try await $0.service.waitUntilIdle() }

    var order: [UInt64] = []
    var seen: Set<String> = []
    // A run whose outcome was not stored before a stop may be repeated.
    for run in invoker.runs where seen.insert(run.event).inserted {
      order.append(run.event.split(separator: ".").first.flatMap { UInt64($0) } ?? 0)
    }
    #expect(order.count == count)
    #expect(order == order.sorted())
  }
}
