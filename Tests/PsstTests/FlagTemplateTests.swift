import FunctionsTesting
import FirestoreClient
import PsstModels
import Testing

@testable import PsstBackend

@Suite("Feature flags")
struct FlagTemplateTests {
  @Test(
    "The place of a user is the one that Remote Config's server side computes",
    arguments: [
      // Computed with hashlib: int(sha256("seed.id")) % 100000000.
      ("", "carl", 78_771_794),
      ("", "tina", 38_420_116),
      ("seed", "carl", 97_775_841),
      ("relationship_validation_enabled", "u-1", 71_957_926),
      ("", "王伟", 44_942_040),
      ("", "", 65_086_549),
    ] as [(String, String, UInt64)]
  )
  func place(seed: String, id: String, place: UInt64) {
    #expect(FlagTemplate.microPercentile(of: id, seed: seed) == place)
  }

  /// The place of Carl in percent, and the one below it.
  private static let edge = "78.771794"
  private static let below = "78.771793"

  @Test(
    "An expression holds for the users whose place it names; nil is not understood",
    arguments: [
      ("percent <= 100", true), ("percent <= 0", false), ("percent <= EDGE", true),
      ("percent <= BELOW", false), ("percent > BELOW", true), ("percent > EDGE", false),
      ("percent between BELOW and EDGE", true), ("percent between EDGE and 100", false),
      ("percent('seed') <= 100 && percent <= 100", true), ("true", true), ("  true ", true),
      ("percent <= 100 && percent <= 0", false), ("percent<=100", true), ("percent <=100", true),
      ("Percent <= 100", true), ("percent  <=\t100", true), ("false", false),
      ("percent <= 100 && app.version.>(['1.0'])", nil), ("device.os == 'ios'", nil), ("", nil),
      ("percent", nil), ("percent <= 101", nil), ("percent <= -1", nil), ("percent <= many", nil),
      ("percent('x <= 100", nil), ("percent < 100", nil), ("percent <= 100 &&", nil),
      ("percent <= 100 100", nil), ("(percent <= 100)", nil), ("percent <= nan", nil),
    ] as [(String, Bool?)]
  )
  func expression(text: String, holds: Bool?) {
    let text = text.replacing("EDGE", with: Self.edge).replacing("BELOW", with: Self.below)
    #expect(FlagTemplate.isTrue(text, for: "carl") == holds)
  }

  @Test("A rollout only ever adds users, and about as many as it says")
  func rollout() {
    let users = (0..<2000).map { "user-\($0)" }
    var before: Set<String> = []
    for percent in [0, 10, 50, 100] {
      let covered = Set(
        users.filter { FlagTemplate.isTrue("percent <= \(percent)", for: $0) == true }
      )
      #expect(before.isSubset(of: covered))
      #expect(abs(covered.count - percent * 20) < 80, "\(percent) % are \(covered.count)")
      before = covered
    }
  }

  @Test("The first true condition that a flag mentions decides, else the default value")
  func order() async throws {
    try await PeopleFixture.run { fixture in
      let flags = StoredFlags(firestore: fixture.suite.firestore)
      let template = fixture.suite.firestore.document(StoredFlags.path)
      #expect(try await !flags.isOn(.relationshipValidation, for: "carl"))

      try await template.set([
        "conditions": [
          ["name": "unmentioned", "expression": "true"], ["name": "never", "expression": "false"],
          ["name": "first", "expression": "true"], ["name": "second", "expression": "true"],
        ],
        "parameters": [
          "relationship_validation_enabled": [
            "defaultValue": ["value": "false"],
            "conditionalValues": [
              "second": ["value": "false"], "first": ["value": "true"], "never": ["value": "false"],
            ],
          ],
          "trainer_chat_enabled": ["defaultValue": ["value": true]],
          "personal_trainer_enabled": ["defaultValue": ["useInAppDefault": true]],
        ],
      ])
      #expect(try await flags.isOn(.relationshipValidation, for: "carl"))
      #expect(try await flags.isOn(.trainerChat, for: "carl"))
      #expect(try await !flags.isOn(.personalTrainer, for: "carl"))
      #expect(try await !flags.isOn(.workoutSync, for: "carl"))
    }
  }

  @Test("A template that cannot be read turns every flag off, and clients cannot change it")
  func malformed() async throws {
    try await PeopleFixture.run { fixture in
      let flags = StoredFlags(firestore: fixture.suite.firestore)
      let template = fixture.suite.firestore.document(StoredFlags.path)
      for fields in [
        ["parameters": 7], ["conditions": "all"],
        ["parameters": ["relationship_validation_enabled": true]],
      ] as [[String: FieldValue]] {
        try await template.set(fields)
        #expect(try await !flags.isOn(.relationshipValidation, for: "carl"))
      }
      try await fixture.suite.expectDenied(as: "tina") {
        _ = try await $0.document(StoredFlags.path).get()
      }
      try await fixture.suite.expectDenied(as: "tina") {
        try await $0.document(StoredFlags.path).set(["parameters": [:]])
      }
    }
  }

  @Test("What cannot be read in a template turns off no other flag, and is named")
  func otherParts() async throws {
    try await PeopleFixture.run { fixture in
      let template = fixture.suite.firestore.document(StoredFlags.path)
      let on: FieldValue = [
        "defaultValue": ["value": "false"], "conditionalValues": ["all": ["value": "TRUE"]],
      ]
      try await template.set([
        "conditions": [
          ["name": "device", "expression": "device.os == 'ios'"], ["name": "lost"], nil,
          ["name": "all", "expression": "percent<=100"],
        ],
        "parameters": [
          "other": 7, "another": nil,
          "trainer_chat_enabled": ["conditionalValues": ["device": ["value": "true"]]],
        ],
        "parameterGroups": [
          "chats": ["parameters": ["relationship_validation_enabled": on]], "odd": 5,
        ],
      ])
      let read = try await template.get().data(as: FlagTemplate.self)
      #expect(read.isOn(.relationshipValidation, for: "carl"))
      #expect(!read.isOn(.trainerChat, for: "carl"))
      #expect(read.problems.count == 6, "\(read.problems)")
      #expect(read.problems.contains { $0.contains("device.os == 'ios'") })
    }
  }
}
