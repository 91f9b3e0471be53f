import Events
import Manifests
import StatusCodes
import Testing

@testable import EmulatorSuite

@Suite("Fired value")
struct FiredValueTests {
  private func value(_ json: String, instance: String? = nil) throws -> DatabaseChange {
    let trigger = FunctionEndpoint.EventTrigger(
      eventType: DatabaseEventType(.written).name,
      eventFilters: instance.map { ["instance": $0] } ?? [:],
      eventFilterPathPatterns: ["ref": "presence/{uid}"]
    )
    return try FiredValue(json: Array(json.utf8), for: trigger, project: "demo").change
  }

  @Test(
    "What is given decides whether the value was created, updated or deleted",
    arguments: [
      (#""data": {"n": [1]}"#, ChangeKind.created), (#""data": 1, "before": 2"#, .updated),
      (#""before": false"#, .deleted),
    ]
  )
  func kinds(sides: String, kind: ChangeKind) throws {
    let change = try value(#"{"path": "/presence/u1", \#(sides)}"#)

    #expect(change.kind == kind && change.path == ["presence", "u1"])
    #expect(change.instance == "demo-default-rtdb")
  }

  @Test("The instance is the one that the trigger names, and lists become objects")
  func form() throws {
    let change = try value(#"{"path": "presence/u1", "data": ["a"]}"#, instance: "my-db")

    #expect(change.instance == "my-db" && change.after == Array(#"{"0":"a"}"#.utf8))
  }

  @Test(
    "A bad body is refused with what to give",
    arguments: [
      ("[]", "not a JSON object"), (#"{"data": 1}"#, "give --path REF"),
      (#"{"path": "a.b", "data": 1}"#, "is not a path"),
      (#"{"path": "/", "data": 1}"#, "is not a path"),
      (#"{"path": "a"}"#, "Nothing changes"), (#"{"path": "a", "data": {"b.c": 1}}"#, "--data: "),
      (#"{"path": "a", "data": 1, "before": 1}"#, "Nothing changes"),
    ]
  )
  func refused(json: String, reason: String) {
    let error = #expect(throws: StatusError.self) { try value(json) }

    #expect(error?.statusMessage.contains(reason) == true, "\(error?.statusMessage ?? "")")
  }
}
