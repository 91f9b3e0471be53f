import Testing

@Suite("Firestore through both doors")
struct ConformanceTests {
  @Test("Documents", arguments: documentScenarios, DoorKind.allCases)
  func documents(scenario: Scenario, door: DoorKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.door(door)) }
  }

  @Test("Writes", arguments: writeScenarios, DoorKind.allCases)
  func writes(scenario: Scenario, door: DoorKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.door(door)) }
  }

  @Test("Queries", arguments: queryScenarios, DoorKind.allCases)
  func queries(scenario: Scenario, door: DoorKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.door(door)) }
  }

  @Test("Transactions", arguments: transactionScenarios, DoorKind.allCases)
  func transactions(scenario: Scenario, door: DoorKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.door(door)) }
  }

  @Test("Errors", arguments: errorScenarios, DoorKind.allCases)
  func errors(scenario: Scenario, door: DoorKind) async throws {
    try await withFirestore { try await scenario.run(through: $0.door(door)) }
  }
}
