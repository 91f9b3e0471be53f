import Testing

@Suite("Firestore through both endpoints")
struct ConformanceTests {
  @Test("Documents", arguments: documentScenarios, EndpointKind.allCases)
  func documents(scenario: Scenario, endpoint: EndpointKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.endpoint(endpoint)) }
  }

  @Test("Writes", arguments: writeScenarios, EndpointKind.allCases)
  func writes(scenario: Scenario, endpoint: EndpointKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.endpoint(endpoint)) }
  }

  @Test("Queries", arguments: queryScenarios, EndpointKind.allCases)
  func queries(scenario: Scenario, endpoint: EndpointKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.endpoint(endpoint)) }
  }

  @Test("Transactions", arguments: transactionScenarios, EndpointKind.allCases)
  func transactions(scenario: Scenario, endpoint: EndpointKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.endpoint(endpoint)) }
  }

  @Test("Errors", arguments: errorScenarios, EndpointKind.allCases)
  func errors(scenario: Scenario, endpoint: EndpointKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.endpoint(endpoint)) }
  }
}
