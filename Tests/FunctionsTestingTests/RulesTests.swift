import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import Testing

@Suite("Security rules in functions' tests")
struct RulesTests {
  private let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents/notes/{id} {
        allow get, delete: if resource.data.owner == request.auth.uid;
        allow create: if request.resource.data.owner == request.auth.uid
          && request.resource.data.at == request.time;
        allow list: if resource.data.owner == request.auth.uid;
      }
    }
    """

  @Test("Users get what the rules allow them, and the server client everything")
  func rulesDecide() async throws {
    try await withFunctions(Sample.greet) { suite in
      try suite.loadRules(rules)
      try await suite.firestore.document("notes/1").set(["owner": "tina"])

      try await suite.expectAllowed(as: "tina") { try await $0.document("notes/1").get() }
      try await suite.expectDenied(as: "tom") { try await $0.document("notes/1").delete() }
      try await suite.expectDenied(as: .anonymous) { try await $0.document("notes/1").get() }
      try await suite.expectAllowed(as: "tina") {
        try await $0.collection("notes").where("owner", .equal, "tina").get()
      }
      try await suite.expectDenied(as: "tina") { try await $0.collection("notes").get() }
    }
  }

  @Test("What a test did not expect is reported with the rule and its values")
  func explanation() async throws {
    try await withFunctions(Sample.greet) { suite in
      try suite.loadRules(rules)
      try await suite.firestore.document("notes/1").set(["owner": "tina"])

      let refused = await recordedIssues {
        try await suite.expectAllowed(as: "tom") { try await $0.document("notes/1").get() }
      }
      let reason = try #require(refused.first?.text)
      #expect(refused.count == 1)
      #expect(reason.contains("firestore.rules:4:5 allow get: false"))
      #expect(reason.contains("resource.data.owner = 'tina'"))
      #expect(reason.contains("request.auth.uid = 'tom'"))

      let allowed = await recordedIssues {
        try await suite.expectDenied(as: "tina") { try await $0.document("notes/1").get() }
      }
      #expect(allowed.first?.text?.hasPrefix("Allowed, but expected to be refused") == true)
    }
  }

  @Test("Rules with a mistake are refused with its place, and the former ones stay")
  func mistake() async throws {
    try await withFunctions(Sample.greet) { suite in
      try suite.loadRules(rules)
      let error = #expect(throws: FunctionsTestingError.self) {
        try suite.loadRules("service cloud.firestore { match /a { allow get: if ; } }")
      }
      #expect(error?.kind == .invalidRules)
      #expect(error?.message.contains("firestore.rules:1:") == true)
      try await suite.expectDenied(as: "tom") { try await $0.document("notes/1").get() }
    }
  }
}
