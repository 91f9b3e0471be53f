import DatabaseClient
import OutboundHTTP
import PsstModels
import PsstServices
import TestSupport
import Testing

@Suite("Presence of others", .timeLimit(.minutes(1)))
struct PresenceServiceTests {
  /// Streams the presence that `presences` has for the uid at the end of the path.
  private func service(_ presences: [String: String]) -> PresenceService {
    let http = ScriptedHTTP { request in
      let uid = request.url.split(separator: "/").last?.split(separator: ".").first ?? ""
      guard let json = presences[String(uid)] else {
        return OutboundResponse(status: 401, body: Array(#"{"error":"Permission denied"}"#.utf8))
      }
      let text = "event: put\ndata: {\"path\":\"/\",\"data\":\(json)}\n\n"
      return OutboundResponse(status: 200, body: Array(text.utf8))
    }
    let database = Database(DatabaseSettings(url: "http://127.0.0.1:9000?ns=main"), http: http)
    return PresenceService(database: database, uid: "me")
  }

  private func first<Element>(_ updates: Updates<Element>) async throws -> Element? {
    for try await element in updates { return element }
    return nil
  }

  @Test(
    "A user is online while a device is connected, and offline if unknown or unreadable",
    arguments: [
      (#"{"online":true,"lastSeen":1000}"#, true), (#"{"online":false,"lastSeen":1000}"#, false),
      (#"{"online":false,"lastSeen":1000,"devices":{"x":1}}"#, true), ("null", false), ("5", false),
      (#"{"online":"yes"}"#, false),
    ]
  )
  func presence(json: String, isOnline: Bool) async throws {
    let presence = try await first(service(["tina": json]).observePresence(of: "tina"))

    #expect(presence?.online == isOnline)
    if json.contains("1000") {
      #expect(presence?.lastSeen == Timestamp(microseconds: 1_000_000))
    }
  }

  @Test("A group has the presences of those who were seen, once all are known")
  func group() async throws {
    let service = service([
      "a": #"{"online":true}"#, "b": #"{"online":false}"#, "c": "null",
    ])
    let group = try await first(service.observePresence(ofGroup: ["a", "b", "c", "a"]))

    #expect(group?.onlineIDs == ["a"] && group?.members.keys.sorted() == ["a", "b"])
  }

  @Test("A refusal is the service's error")
  func refused() async {
    await #expect(throws: PresenceError.permissionDenied) {
      _ = try await first(service([:]).observePresence(of: "tina"))
    }
    await #expect(throws: PresenceError.permissionDenied) {
      _ = try await first(service(["a": "1"]).observePresence(ofGroup: ["a", "b"]))
    }
  }
}
