import Foundation
import FunctionLogs
import HTTPMessages
import HTTPTypes
import Invocation
import StatusCodes
import Testing
import TestSupport

@testable import WorkerPool

/// Workers that violate the protocol: `SampleOddWorker` of the sample functions.
@Suite("Bad workers", .timeLimit(.minutes(5)))
struct BadWorkerFleetTests {
  private func odd(_ fault: String) throws -> [DeployedFunction] {
    try sample(["echo"], environment: ["SAMPLE_ODD": fault])
  }

  @Test(
    "One that never becomes ready is not deployed, and is said not to have answered",
    arguments: ["neverListens", "neverAccepts", "illNonsense"]
  )
  func neverReady(fault: String) async throws {
    let configuration = WorkerFleet.Configuration(startTimeout: .seconds(2))
    try await withFleet([String](), configuration) { fleet, log in
      let error = await #expect(throws: StatusError.self) {
        try await fleet.replaceFunctions(odd(fault))
      }
      #expect(error?.statusMessage.contains("it did not answer within 2.0 seconds") == true)
      let lines = await log.entries(function: "echo").map(\.message)
      #expect(lines.contains { $0.hasPrefix("A new worker of echo was ended: it did not answer") })
    }
  }

  @Test(
    "Callers receive a crash error if the worker sends garbage or ends before or during a response",
    arguments: [
      ("nonsense", "closed the connection"), ("half", "code 9"), ("dies", "code 9"),
    ]
  )
  func crashes(fault: String, words: String) async throws {
    try await withFleet(odd(fault)) { fleet, _ in
      for _ in 0..<2 {
        let error = await #expect(throws: InvocationError.self) {
          try await fleet.call("echo")
        }
        #expect(error?.kind == .crashed)
        #expect(error?.message.contains(words) == true, "\(String(describing: error))")
      }
    }
  }

  @Test("A streamed answer that stops half-way ends with an error for its reader")
  func halfStream() async throws {
    try await withFleet(odd("halfStream")) { fleet, _ in
      let reply = try await fleet.call("echo")
      let error = await #expect(throws: InvocationError.self) {
        _ = try await reply.body.collect(upTo: 1 << 20)
      }
      #expect(error?.kind == .crashed)
    }
  }

  @Test(
    "Its callers get an answer by their deadline when it sends none, or less than it announced",
    arguments: ["short", "neverReads"]
  )
  func silent(fault: String) async throws {
    let configuration = WorkerFleet.Configuration(cancelGrace: .milliseconds(100))
    try await withFleet(odd(fault), configuration) { fleet, _ in
      for _ in 0..<2 {
        let error = await #expect(throws: InvocationError.self) {
          try await fleet.call("echo", timeout: .milliseconds(500))
        }
        #expect(error?.kind == .timedOut)
      }
    }
  }

  @Test(
    "Bytes after a response are discarded, and the next call receives its own response",
    arguments: ["long", "twice"]
  )
  func tooMuch(fault: String) async throws {
    try await withFleet(odd(fault)) { fleet, _ in
      for _ in 0..<10 {
        let reply = try await fleet.call("echo")
        #expect(try await reply.text == "ok")
      }
    }
  }
}
