import Foundation
import FunctionsTesting
import StarterModels
import Testing

@testable import StarterFunctions

@Suite("Security rules")
struct RulesTests {
  /// The path of the rules, wherever the tests are started.
  private let rules = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "firestore.rules").path

  @Test("Users write and read their own document and read their own greeting, and no one else's")
  func ownDocuments() async throws {
    try await withFunctions(\.app) { environment in
      WelcomeFunctions(firestore: environment.firestore)
    } test: { suite, _ in
      try suite.loadRules(file: rules)
      try await suite.expectAllowed(as: "tina") {
        try await $0.document("users/tina").set(User(name: "Tina"))
      }
      try await suite.settle()

      try await suite.expectAllowed(as: "tina") { try await $0.document("users/tina").get() }
      try await suite.expectAllowed(as: "tina") { try await $0.document("greetings/tina").get() }
      try await suite.expectDenied(as: "tom") {
        try await $0.document("users/tina").set(User(name: "Tom"))
      }
      try await suite.expectDenied(as: "tom") { _ = try await $0.document("greetings/tina").get() }
      try await suite.expectDenied(as: .anonymous) {
        _ = try await $0.document("users/tina").get()
      }
    }
  }

  @Test("What no rule allows is denied")
  func everythingElse() async throws {
    try await withFunctions(\.app) { environment in
      WelcomeFunctions(firestore: environment.firestore)
    } test: { suite, _ in
      try suite.loadRules(file: rules)

      try await suite.expectDenied(as: "tina") {
        try await $0.document("users/tina").set(["name": "Tina", "isAdmin": true])
      }
      try await suite.expectDenied(as: "tina") {
        try await $0.document("greetings/tina").set(Greeting(text: "Hello, me!"))
      }
      try await suite.expectDenied(as: "tina") { _ = try await $0.collection("users").get() }
      try await suite.expectDenied(as: "tina") { _ = try await $0.document("notes/1").get() }
    }
  }
}
