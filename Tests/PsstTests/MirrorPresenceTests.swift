import FunctionsTesting
import PsstBackend
import PsstFunctions
import PsstModels
import Testing

@Suite("mirrorPresence")
struct MirrorPresenceTests {
  /// Delivers presences of Tina to the function, each at a second, and returns what is stored then.
  private func stored(
    after events: [(second: Int, presence: UserPresence?)],
    of uid: String = "tina"
  ) async throws -> MapValue? {
    try await deliver(
      events.map { second, presence in
        ValueEvent(
          path: "presence/\(uid)",
          data: ValueWrite(before: UserPresence(online: false), after: presence),
          time: Self.time(second)
        )
      },
      of: uid
    )
  }

  private func deliver<Value: Sendable>(
    _ events: [ValueEvent<ValueWrite<Value>>],
    of uid: String = "tina"
  ) async throws -> MapValue? {
    let found = Found()
    try await withFunctions({ (functions: AppFunctions) in
      FunctionsApp { functions.mirrorPresence }
    }) { environment in
      AppFunctions(
        services: BackendServices(
          firestore: environment.firestore,
          settings: PsstSettings(
            embedding: .lexical,
            vectors: VectorSettings(host: ProviderStub.host)
          ),
          http: environment.http
        )
      )
    } test: { suite, functions in
      for event in events {
        let run = try await suite.deliver(event, to: functions.mirrorPresence)
        #expect(run.outcome == .succeeded)
      }
      guard uid.isUserID else { return }
      let document = try await suite.firestore.document("presence/\(uid)").get()
      if document.exists { await found.set(document.fields) }
    }
    return await found.fields
  }

  private actor Found {
    var fields: MapValue?
    func set(_ fields: MapValue) { self.fields = fields }
  }

  private static func time(_ second: Int) -> Timestamp {
    Timestamp(microseconds: 1_800_000_000_000_000 + Int64(second) * 1_000_000)
  }

  private static func presence(_ online: Bool, _ second: Int) -> UserPresence {
    UserPresence(online: online, lastSeen: time(second))
  }

  private static func fields(_ online: Bool, _ second: Int) -> MapValue {
    ["online": .boolean(online), "lastSeen": .timestamp(time(second))]
  }

  @Test("Firestore follows, and the newer time wins whatever the order")
  func order() async throws {
    let online = (1, Self.presence(true, 1) as UserPresence?)
    let offline = (2, Self.presence(false, 2) as UserPresence?)

    #expect(try await stored(after: [online]) == Self.fields(true, 1))
    #expect(try await stored(after: [online, offline]) == Self.fields(false, 2))
    #expect(try await stored(after: [offline, online, online]) == Self.fields(false, 2))
  }

  @Test("A time beyond that of the change counts as that of the change")
  func future() async throws {
    let wrong = (1, Self.presence(true, 86_400) as UserPresence?)
    let right = (2, Self.presence(false, 2) as UserPresence?)

    #expect(try await stored(after: [wrong]) == Self.fields(true, 1))
    #expect(try await stored(after: [wrong, right]) == Self.fields(false, 2))
  }

  @Test("A presence that is gone is offline since then")
  func gone() async throws {
    #expect(
      try await stored(after: [(1, Self.presence(true, 1)), (3, nil)]) == Self.fields(false, 3)
    )
  }

  @Test("A user with a device that is connected is online")
  func devices() async throws {
    struct Written: Codable, Sendable {
      var online = false
      var lastSeen = MirrorPresenceTests.time(1)
      var devices = ["phone": 1]
    }
    let event = ValueEvent(
      path: "presence/tina",
      data: ValueWrite(before: nil, after: Written()),
      time: Self.time(1)
    )

    #expect(try await deliver([event]) == Self.fields(true, 1))
  }

  @Test("What is no presence is offline, and a key that is no uid is left out")
  func unreadable() async throws {
    let event = ValueEvent(
      path: "presence/tina",
      data: ValueWrite(before: nil, after: 5),
      time: Self.time(1)
    )

    #expect(try await deliver([event]) == Self.fields(false, 1))
    #expect(try await stored(after: [(1, Self.presence(true, 1))], of: "__x__") == nil)
  }
}
