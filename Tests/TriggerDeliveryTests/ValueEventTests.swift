import DocumentModel
import EventLog
import Events
import Foundation
import Identity
import Invocation
import Manifests
import NIOCore
import StatusCodes
import StorageEngine
import TestSupport
import Testing

@testable import TriggerDelivery

@Suite("Events of the Realtime Database", .timeLimit(.minutes(5)))
struct ValueEventTests {
  private let storage = MemoryStorage()
  private let invoker = ScriptedInvoker()

  private static func change(
    _ path: String,
    _ before: String,
    _ after: String,
    instance: String = "main"
  ) -> DatabaseChange {
    DatabaseChange(
      instance: instance,
      path: path.split(separator: "/").map { String($0) },
      before: Array(before.utf8),
      after: Array(after.utf8)
    )
  }

  private func bench(_ functions: [String: FunctionEndpoint]) throws -> DeliveryBench {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(functions)
    return bench
  }

  /// The function and the path of each event that was delivered, with the event's id.
  private var delivered: Set<[String]> {
    Set(
      invoker.requests.map { request in
        [request.function, request.field("ce-ref") ?? "", request.field("ce-id") ?? ""]
      }
    )
  }

  @Test("One change runs each function for each node that it watches and that differs")
  func expansion() async throws {
    let bench = try bench([
      "all": .value(.written, "presence/{uid}"), "created": .value(.created, "presence/{uid}"),
      "deep": .value(.updated, "presence/{uid}/devices/{device}"),
      "other": .value(.written, "presence/{uid}", instance: "other-*"),
      "typing": .value(.written, "typing/{chat}"),
      "whole": .value(.deleted, "presence"),
    ])
    try await bench.run { bench in
      let sequence = try await bench.commit(
        Self.change(
          "presence",
          #"{"a":{"x":1},"b":{"devices":{"d":1,"e":1}},"c":1}"#,
          #"{"a":{"x":1},"b":{"devices":{"d":2,"e":1}},"d":1}"#
        )
      )
      try await bench.service.waitUntilIdle()

      let id = "\(sequence).0"
      #expect(
        delivered == [
          ["all", "presence/b", id], ["all", "presence/c", "\(id)-1"],
          ["all", "presence/d", "\(id)-2"], ["created", "presence/d", "\(id)-2"],
          ["deep", "presence/b/devices/d", "\(id)-3"],
        ]
      )
    }
  }

  @Test("The event has the node before, a patch to the node after, and who wrote it")
  func wire() async throws {
    let bench = try bench(["f": .value(.written, "presence/{uid}")])
    try await bench.run { bench in
      let user = AuthContext.user(UserIdentity(uid: "tina", claimsJSON: "{}"))
      let sequence = try await bench.commit(
        Self.change("presence/a b", #"{"on":true,"t":1}"#, #"{"on":false,"t":1}"#),
        auth: user
      )
      try await bench.service.waitUntilIdle()

      let request = try #require(invoker.requests.first)
      let expected = [
        "ce-type": "google.firebase.database.ref.v1.written", "ce-id": "\(sequence).0",
        "ce-source":
          "//firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/main",
        "ce-subject": "refs/presence/a%20b", "ce-ref": "presence/a%20b", "ce-instance": "main",
        "ce-firebasedatabasehost": "firebaseio.com", "ce-location": "us-central1",
        "ce-authtype": "app_user", "ce-authid": "tina", "content-type": "application/json",
        "ce-time": bench.now.description,
      ]
      for (name, value) in expected { #expect(request.field(name) == value, "\(name)") }
      #expect(
        String(buffer: request.wholeBody)
          == #"{"@type":"type.googleapis.com/google.events.firebase.database.v1.ReferenceEventData","#
          + #""data":{"on":true,"t":1},"delta":{"on":false}}"#
      )
    }
  }

  @Test(
    "The caller is told apart",
    arguments: [(AuthContext.admin, "admin"), (.unauthenticated, "unauthenticated")]
  )
  func callers(auth: AuthContext, type: String) async throws {
    let bench = try bench(["f": .value(.written, "a")])
    try await bench.run { bench in
      try await bench.commit(Self.change("a", "1", "2"), auth: auth)
      try await bench.service.waitUntilIdle()

      #expect(invoker.requests.first?.field("ce-authtype") == type)
      #expect(invoker.requests.first?.field("ce-authid") == nil)
    }
  }

  @Test("A failed event comes again with its id and its node, also after the log gave it up")
  func redelivery() async throws {
    invoker.set("f") { $0 == 1 ? .failure("no") : .ok }
    let bench = try bench(["f": .value(.written, "a/{b}", retries: true)])
    try await bench.run { bench in
      try await bench.commit(Self.change("a", "null", #"{"x":1,"y":{"z":2}}"#))
      try await bench.service.waitUntilIdle()
      let batch = try await storage.read { snapshot in
        let records = try CommitLog.records(after: 0, limit: 10, in: snapshot)
        var batch = StorageBatch()
        batch.deleteRange(CommitLog.keyspace, from: nil, to: nil)
        try DeliveryService.keepNeeded(records, in: snapshot, to: &batch)
        return batch
      }
      try await storage.commit(batch)
      try await bench.jump(.seconds(60))

      let bodies = Dictionary(grouping: invoker.requests) { $0.field("ce-ref") ?? "" }
        .mapValues { $0.map { String(buffer: $0.wholeBody) + ($0.field("ce-id") ?? "") } }
      #expect(Set(bodies.keys) == ["a/x", "a/y"])
      // The first failure of the function fails one of the two.
      let counts = bodies.values.map(\.count).sorted()
      #expect(counts == [1, 2])
      #expect(bodies.values.allSatisfy { Set($0).count == 1 })
    }
  }

  @Test("Events of one node run one after the other, and a settled one is found by its id")
  func rows() async throws {
    let bench = try bench(["f": .value(.written, "a/{b}")])
    try await bench.run { bench in
      try await bench.commit(Self.change("a", "null", #"{"x":1,"y":2}"#))
      try await bench.service.waitUntilIdle()

      let list = try await bench.service.administration.list()
      #expect(list.map(\.subject).sorted() == ["a/x", "a/y"])
      #expect(Set(list.compactMap(\.lane)).count == 2)
      #expect(list.map(\.kind) == ["written", "written"])
      #expect(list.map(\.changeKind) == ["created", "created"])
      for delivery in list {
        let id = try #require(DeliveryID(delivery.id.description))
        #expect(try await bench.service.administration.show(id) == delivery)
      }
    }
  }

  @Test("One change causes at most a thousand events of a function")
  func bound() throws {
    let table = try TriggerTable(functions: [
      "few": .value(.written, "a/{b}/c"), "many": .value(.written, "a/{b}"),
    ])
    let members = (0..<1200).map { #""k\#($0)":1"# }.joined(separator: ",")
    var lost: ValueMatch.Loss?
    let matches = try table.matches(Self.change("a", "null", "{\(members)}"), lost: &lost)

    #expect(matches.count == 1000 && lost == .tooMany)
    #expect(matches.allSatisfy { $0.function == "many" })
  }

  @Test("A change below a node that nobody watched at the time is reported as lost")
  func recordedBelow() throws {
    let table = try TriggerTable(functions: ["f": .value(.written, "a/{b}")])
    var lost: ValueMatch.Loss?
    let matches = try table.matches(Self.change("a/b/c", "1", "2"), lost: &lost)

    #expect(matches.isEmpty && lost == .recordedBelow)
  }

  @Test(
    "A ** watches the written value, or the first that matches below it",
    arguments: [
      ("a/**", "a/b/c", "1", ["a/b/c"]),
      ("a/**/z", "a", #"{"z":1,"b":{"z":{"z":1}}}"#, ["a/b/z", "a/z"]),
      ("{p=**}", "", #"{"a":1}"#, [""]),
    ]
  )
  func many(pattern: String, path: String, after: String, expected: [String]) throws {
    let table = try TriggerTable(functions: ["f": .value(.written, pattern)])
    var lost: ValueMatch.Loss?
    let matches = try table.matches(Self.change(path, "null", after), lost: &lost)

    #expect(matches.map { $0.change.path.joined(separator: "/") } == expected && lost == nil)
  }

  @Test("A trigger with a bad pattern is refused with its reason")
  func badPattern() {
    for endpoint in [
      FunctionEndpoint.value(.written, "a/{b"), .value(.written, ""),
      .value(.written, "a", instance: "x*y*"),
    ] {
      #expect(throws: StatusError.self) { try TriggerTable(functions: ["f": endpoint]) }
    }
  }

  @Test("A change whose nodes are not JSON is corrupt")
  func corrupt() {
    #expect(throws: CorruptDataError.self) { try Self.change("a", "{", "1").parsed() }
  }
}

extension FunctionEndpoint {
  /// A function triggered by changes of values.
  fileprivate static func value(
    _ kind: ChangeKind,
    _ ref: String,
    instance: String = "*",
    retries: Bool = false
  ) -> FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.eventTrigger = EventTrigger(
      eventType: DatabaseEventType(kind).name,
      eventFilters: [:],
      eventFilterPathPatterns: ["ref": ref, "instance": instance],
      retry: retries
    )
    return endpoint
  }
}

extension DeliveryBench {
  /// Commits a change of values and returns its sequence.
  @discardableResult
  fileprivate func commit(
    _ change: DatabaseChange,
    auth: AuthContext = .admin
  ) async throws -> UInt64 {
    var batch = StorageBatch()
    CommitLog.append(
      [],
      [.value(change)],
      commitTime: now,
      database: DatabaseName(project: DeliveryService.Configuration().project),
      auth: auth,
      to: &batch
    )
    let sequence = try await storage.commit(batch)
    tailer.wake()
    return sequence
  }
}
