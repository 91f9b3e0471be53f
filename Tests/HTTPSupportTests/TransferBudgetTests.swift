import HTTPMessages
import HTTPSupport
import HTTPTypes
import Logging
import NIOCore
import Synchronization
import Testing
import TestSupport

@Suite("The memory of all transfers", .timeLimit(.minutes(5)))
struct TransferBudgetTests {
  private static let mebibyte = 1 << 20

  private func budget(_ bytesMax: Int, stallMin: Duration = .seconds(3600)) -> TransferBudget {
    TransferBudget(
      bytesMax: bytesMax,
      stallMin: stallMin,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
  }

  // MARK: - The budget alone

  @Test("No more is held than there is, and what is given back can be held again")
  func bound() {
    let budget = budget(100)
    let first = TransferHold(budget) {}
    do {
      let second = TransferHold(budget) {}
      #expect(first.add(60))
      #expect(second.add(40))
      #expect(!first.add(1))
      #expect(second.set(30))
      #expect(first.add(10))
    }
    #expect(budget.heldBytes == 70, "A hold releases its bytes when it ends.")
    first.remove(1000)
    #expect(budget.heldBytes == 0)
  }

  @Test("Transfers that do not move give way, those of clients that have done their part do not")
  func stalls() {
    let budget = budget(100, stallMin: .zero)
    let ended = Mutex<[String]>([])
    func hold(_ name: String) -> TransferHold {
      TransferHold(budget) { ended.withLock { $0.append(name) } }
    }
    let (slow, done, other) = (hold("slow"), hold("done"), hold("other"))
    #expect(slow.add(50))
    #expect(done.add(50))
    done.clientIsDone()
    #expect(other.add(40))
    #expect(ended.withLock { $0 } == ["slow"])
    #expect(slow.isEnded && !slow.add(1))
    #expect(!other.add(70), "Only its own bytes could be given up, and they would not suffice.")
    #expect(!done.isEnded)
  }

  @Test("Results leave a quarter of the memory to requests")
  func results() {
    let budget = budget(100)
    let results = TransferHold(budget, isForResults: true) {}
    let request = TransferHold(budget) {}
    #expect(results.add(75) && !results.add(1))
    #expect(request.add(25) && !request.add(1))
  }

  // MARK: - Requests

  private let collects: HTTPService.Responder = { request, _ in
    let body = try await request.wholeBody(upTo: 100 << 20)
    return .text("\(body.readableBytes).")
  }

  private static func head(_ length: Int) -> String {
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n"
  }

  @Test("A body that does not fit beside the others gets 503, which says what is full")
  func fullForBodies() async throws {
    let budget = budget(2 * Self.mebibyte)
    try await withService(budget: budget, responder: collects) { address, _ in
      try await RawConnection.with(address) { first in
        try await first.send(Self.head(1_900_000) + String(repeating: "x", count: 1_800_000))
        await eventually("the body is held") { budget.heldBytes >= 1_800_000 }
        try await RawConnection.with(address) { second in
          try await second.send(Self.head(900_000) + String(repeating: "x", count: 900_000))
          let refusal = try await second.receive(until: "}}")
          #expect(refusal.hasPrefix("HTTP/1.1 503 "))
          #expect(refusal.contains("memory for requests and responses under way is full (2 MiB"))
        }
        try await first.send(String(repeating: "x", count: 100_000))
        #expect(try await first.receive(until: "1900000.").hasPrefix("HTTP/1.1 200 "))
      }
    }
    #expect(budget.heldBytes == 0)
  }

  @Test("A short body that comes in parts is counted as well, and one that comes at once is not")
  func shortBodies() async throws {
    let budget = budget(10_000)
    try await withService(budget: budget, responder: collects) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(Self.head(20_000) + "x")
        #expect(try await client.receive(until: "}}").hasPrefix("HTTP/1.1 503 "))
      }
      try await RawConnection.with(address) { client in
        try await client.send(Self.head(5000) + "x")
        await eventually("the body is held") { budget.heldBytes >= 5000 }
        try await client.send(String(repeating: "x", count: 4999))
        #expect(try await client.receive(until: "5000.").hasPrefix("HTTP/1.1 200 "))
        #expect(budget.heldBytes == 0)
      }
    }
  }

  @Test("A body that has stopped gives its memory to another and ends with 408")
  func stalledBody() async throws {
    let budget = budget(2 * Self.mebibyte, stallMin: .zero)
    try await withService(budget: budget, responder: collects) { address, _ in
      try await RawConnection.with(address) { first in
        try await first.send(Self.head(1_900_000) + String(repeating: "x", count: 1_800_000))
        await eventually("the body is held") { budget.heldBytes >= 1_800_000 }
        try await RawConnection.with(address) { second in
          try await second.send(Self.head(900_000) + String(repeating: "x", count: 900_000))
          #expect(try await second.receive(until: "900000.").hasPrefix("HTTP/1.1 200 "))
        }
        #expect(try await first.receiveAll().hasPrefix("HTTP/1.1 408 "))
      }
    }
  }

  // MARK: - Responses

  private static let largeBytes = 32 << 20
  /// A response whose body is whole, or produced from as many bytes in memory.
  private func large(isProduced: Bool) -> HTTPService.Responder {
    let whole = ByteBuffer(repeating: 65, count: Self.largeBytes)
    return { _, _ in
      guard isProduced else { return Response(status: .ok, body: .whole(whole)) }
      var response = Response(
        status: .ok,
        body: .produced { write in
          var rest = whole
          while let piece = rest.readSlice(length: min(rest.readableBytes, 64 << 10)),
            piece.readableBytes > 0
          {
            try await write(piece)
          }
        }
      )
      response.heldBytes = whole.readableBytes
      return response
    }
  }
  private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  @Test(
    "A response that does not fit beside unread ones becomes 503, and those stay whole",
    arguments: [false, true]
  )
  func fullForResponses(isProduced: Bool) async throws {
    let budget = budget(40 << 20)
    let large = large(isProduced: isProduced)
    try await withService(budget: budget, responder: large) { address, _ in
      try await RawConnection.with(address) { first in
        try await first.send(Self.get)
        let head = try await first.receive(until: "\r\n\r\n")
        try await RawConnection.with(address) { second in
          try await second.send(Self.get)
          #expect(try await second.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 503 "))
        }
        first.finishSending()
        let rest = try await first.receiveAll()
        #expect(head.utf8.count + rest.utf8.count > Self.largeBytes)
      }
    }
    #expect(budget.heldBytes == 0)
  }

  @Test(
    "A client that does not read is closed when its memory is needed",
    arguments: [false, true]
  )
  func unreadResponse(isProduced: Bool) async throws {
    let budget = budget(40 << 20, stallMin: .zero)
    let large = large(isProduced: isProduced)
    try await withService(budget: budget, responder: large) { address, _ in
      try await RawConnection.with(address) { first in
        try await first.send(Self.get)
        let head = try await first.receive(until: "\r\n\r\n")
        // Others are refused while the first response still fills the buffers of its connection.
        var isServed = false
        while !isServed {
          try await RawConnection.with(address) { second in
            try await second.send(Self.get)
            isServed = try await second.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200 ")
          }
        }
        let rest = try await first.receiveAll()
        #expect(head.utf8.count + rest.utf8.count < Self.largeBytes)
      }
    }
  }
}
