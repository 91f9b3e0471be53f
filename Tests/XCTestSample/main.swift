// An XCTest test whose checks fail, and the same checks without a test. `test_checks.py` compares
// what the program writes with the marked lines below.

import FunctionsRuntime
import FunctionsTesting
import XCTest

private let greet = OnDocumentCreated<FirestoreDocument>("greet", at: "users/{userId}") { _ in }

private let rules = """
  service cloud.firestore {
    match /databases/{database}/documents/users/{id} { allow get: if id == request.auth.uid; }
  }
  """

/// Makes checks that fail, and writes a line after each.
private func fail() async throws {
  try await withFunctions(greet) { suite in
    try suite.loadRules(rules)
    try suite.expectRuns([greet: 1])  // fails: runs
    print("after runs")
    let read = try await suite.expectAllowed(as: "tom") {  // fails: allowed
      try await $0.document("users/tina").get()
    }
    print("after allowed, read: \(read != nil)")
    try await suite.expectDenied(as: "tom") {  // fails: denied
      try await $0.document("users/tom").get()
    }
    print("after denied")
    _ = try? await suite.http.send(OutboundRequest(url: "https://api.example"))
    try await suite.settle()  // fails: settle
    print("after settle")
  }
}

private final class FailingChecks: XCTestCase {
  func testChecks() async throws { try await fail() }

  #if !canImport(ObjectiveC)
    static var allTests: [(String, (FailingChecks) -> () throws -> Void)] {
      [("testChecks", asyncTest(testChecks))]
    }
  #endif
}

if CommandLine.arguments.contains("--without-a-test") {
  do { try await fail() } catch { print("thrown: \(error)") }
} else {
  #if canImport(ObjectiveC)
    XCTestSuite(forTestCaseClass: FailingChecks.self).run()
  #else
    XCTMain([testCase(FailingChecks.allTests)])
  #endif
}
