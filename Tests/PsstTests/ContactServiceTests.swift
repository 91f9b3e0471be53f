import FunctionsTesting
import FirestoreClient
import PsstFunctions
import PsstModels
import Synchronization
import TestSupport
import Testing

@testable import PsstServices

/// A trainer's contacts, as the app changes them under the access rules.
@Suite("Contact service")
struct ContactServiceTests {
  private static let noFunctions = CallableClient(
    origin: "http://functions.test",
    http: ScriptedHTTP(),
    tokens: UnsignedTokens(uid: "tina")
  )

  // MARK: Clients

  @Test(
    "A client is added by an address in any case, with the fields of a contact",
    arguments: ["carl@psst.app", "  Carl@PSST.app\n", "CARL@psst.APP"]
  )
  func addClient(email: String) async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      let client = try await contacts.addClient(email: email)

      let stored = try #require(try await fixture.stored("contacts/tina/clients/carl"))
      #expect(Set(stored.keys) == ["id", "clientId", "displayName", "email", "addedAt", "source"])
      #expect(try await contacts.getClients() == [client])
      #expect(client.id == "carl")
      #expect(client.displayName == "Carl")
      #expect(client.email == "carl@psst.app")
      #expect(client.source == "trainer")
    }
  }

  @Test(
    "Who cannot be added is refused with the app's text, and nothing is written",
    arguments: [
      ("", ContactError.invalidEmail, "Please enter a valid email address"),
      ("carl", .invalidEmail, "Please enter a valid email address"),
      ("carl@psst", .invalidEmail, "Please enter a valid email address"),
      ("a b@psst.app", .invalidEmail, "Please enter a valid email address"),
      ("carl@@psst.app", .invalidEmail, "Please enter a valid email address"),
      ("carl@psst..app", .invalidEmail, "Please enter a valid email address"),
      (".carl@psst.app", .invalidEmail, "Please enter a valid email address"),
      ("carl@-psst.app", .invalidEmail, "Please enter a valid email address"),
      ("carl@psst.app\u{0}", .invalidEmail, "Please enter a valid email address"),
      ("<carl@psst.app>", .invalidEmail, "Please enter a valid email address"),
      (
        String(repeating: "x", count: 10_000) + "@psst.app", .invalidEmail,
        "Please enter a valid email address"
      ),
      ("nobody@psst.app", .userNotFound, "User not found. Client must have a Psst account"),
      ("josé@exämple.org", .userNotFound, "User not found. Client must have a Psst account"),
      ("tina@psst.app", .ownAddress, "This is your own email address"),
      ("tom@psst.app", .notAClient, "This user is a trainer. Only clients can be added"),
      ("olga@psst.app", .notAClient, "This user is a trainer. Only clients can be added"),
    ]
  )
  func cannotAdd(email: String, error: ContactError, text: String) async throws {
    try await PeopleFixture.run { fixture in
      let thrown = await #expect(throws: ContactError.self) {
        try await fixture.app("tina").contacts.addClient(email: email)
      }
      #expect(thrown == error)
      #expect(thrown?.errorDescription == text)
      let stored = try await fixture.ids("contacts/tina/clients")
      #expect(stored.isEmpty)
    }
  }

  @Test("A client is added once, also when the trainer taps twice")
  func addTwice() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      let results = await withTaskGroup(of: Result<Client, any Error>.self) { group in
        for _ in 0..<5 {
          group.addTask {
            do {
              return .success(try await contacts.addClient(email: "carl@psst.app"))
            } catch {
              return .failure(error)
            }
          }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      let errors = results.compactMap { result -> ContactError? in
        if case .failure(let error) = result { error as? ContactError } else { nil }
      }
      #expect(errors == Array(repeating: .alreadyExists, count: 4))
      #expect(errors.first?.errorDescription == "This user is already in your client list")
    }
  }

  @Test("Clients are listed with those added last first, and observed as they change")
  func list() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      var observed = contacts.observeClients().makeAsyncIterator()
      #expect(try await observed.next()?.isEmpty == true)
      for name in ["carl", "cora", "cleo"] {
        try await contacts.addClient(email: "\(name)@psst.app")
        #expect(try await observed.next()?.first?.id == name)
        try await fixture.suite.clock.advance(by: .seconds(1))
      }
      #expect(try await contacts.getClients().map(\.id) == ["cleo", "cora", "carl"])
      try await contacts.removeClient(clientId: "cora")
      #expect(try await observed.next()?.map(\.id) == ["cleo", "carl"])
    }
  }

  @Test("A contact that cannot be read hides itself and no other")
  func malformed() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      try await contacts.addClient(email: "carl@psst.app")
      let other = fixture.suite.firestore.document("contacts/tina/clients/x")
      try await other.set(["addedAt": "yesterday", "displayName": 7])
      #expect(try await contacts.getClients().map(\.id) == ["carl"])
    }
  }

  @Test("A removed client leaves a record, and the trainer can add them again")
  func remove() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      try await contacts.addClient(email: "carl@psst.app")
      try await contacts.removeClient(clientId: "carl")
      #expect(try await contacts.getClients() == [])
      #expect(try await fixture.ids("contacts/tina/removed") == ["carl"])

      for id in ["carl", "nobody", "", "a/b"] {
        let error = await #expect(throws: ContactError.self) {
          try await contacts.removeClient(clientId: id)
        }
        #expect(error == .clientNotFound)
        #expect(error?.errorDescription == "Client not found")
      }
      try await contacts.addClient(email: "carl@psst.app")
      #expect(try await contacts.getClients().map(\.id) == ["carl"])
      let stored = try await fixture.ids("contacts/tina/removed")
      #expect(stored.isEmpty)
    }
  }

  @Test("A name that is too long or missing still gives a contact a name")
  func names() async throws {
    try await PeopleFixture.run { fixture in
      let long = String(repeating: "👩‍👩‍👧", count: 50)
      try await fixture.suite.firestore.document("users/carl").update(["displayName": .value(long)])
      try await fixture.suite.firestore.document("users/cora").update(["displayName": " \u{200B}"])
      let contacts = fixture.app("tina").contacts
      let carl = try await contacts.addClient(email: "carl@psst.app")
      #expect(carl.displayName == String(repeating: "👩‍👩‍👧", count: 12))
      #expect(try await contacts.addClient(email: "cora@psst.app").displayName == "cora@psst.app")
    }
  }

  @Test("A client has the name of their profile, and the contact's while it cannot be read")
  func currentNames() async throws {
    try await PeopleFixture.run { fixture in
      let adding = fixture.app("tina").contacts
      for name in ["carl", "cora", "cleo"] { try await adding.addClient(email: "\(name)@psst.app") }
      try await fixture.app("carl").users.updateUser(displayName: "Charles")
      let users = fixture.suite.firestore.collection("users")
      try await users.document("cora").update(["displayName": " "])
      try await users.document("cleo").delete()

      let contacts = fixture.app("tina").contacts
      #expect(
        try await Set(contacts.getClients().map(\.displayName)) == ["Cleo", "Cora", "Charles"]
      )
      #expect(try await contacts.searchContacts(query: "charles").map(\.id) == ["carl"])
      var observed = contacts.observeClients().makeAsyncIterator()
      #expect(try await observed.next()?.first { $0.id == "carl" }?.displayName == "Charles")
      #expect(
        try await fixture.stored("contacts/tina/clients/carl")?["displayName"] == .string("Carl")
      )

      // Rules that hide users: the list is there all the same.
      let firestore = fixture.line.firestore
      let blind = ContactService(
        firestore: firestore.acting(as: UnsignedTokens(uid: "tina")),
        uid: "tina",
        users: UserService(firestore: firestore.acting(as: .anonymous), uid: "tina"),
        functions: Self.noFunctions
      )
      #expect(try await Set(blind.getClients().map(\.displayName)) == ["Cleo", "Cora", "Carl"])
    }
  }

  @Test("A relation is known to its two people, and to nobody else")
  func relationship() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      try await contacts.addClient(email: "carl@psst.app")
      #expect(try await contacts.validateRelationship(trainerId: "tina", clientId: "carl"))
      #expect(try await !contacts.validateRelationship(trainerId: "tina", clientId: "cora"))
      #expect(try await !contacts.validateRelationship(trainerId: "tina", clientId: "a/b"))
      let carl = fixture.app("carl").contacts
      #expect(try await carl.validateRelationship(trainerId: "tina", clientId: "carl"))
      #expect(try await !carl.validateRelationship(trainerId: "tom", clientId: "carl"))
      for uid in ["cora", "tom"] {
        await #expect(throws: ContactError.unauthorized) {
          try await fixture.app(uid).contacts
            .validateRelationship(trainerId: "tina", clientId: "carl")
        }
        await #expect(throws: CallableError.self) {
          try await fixture.suite.call(
            fixture.functions.validateRelationship,
            ValidateRelationshipRequest(trainerId: "tina", clientId: "carl"),
            as: .user(uid)
          )
        }
      }
      try await contacts.removeClient(clientId: "carl")
      #expect(try await !carl.validateRelationship(trainerId: "tina", clientId: "carl"))
      fixture.line.setOffline(true)
      await #expect(throws: ContactError.networkError) {
        try await contacts.validateRelationship(trainerId: "tina", clientId: "carl")
      }
    }
  }

  // MARK: Prospects

  @Test(
    "A prospect has a name of any script and an address that nobody has",
    arguments: [
      ("Anna Smith", "prospect-anna-smith@psst.app"),
      ("  Zoë   O'Brien-Müller ", "prospect-zoe-o-brien-muller@psst.app"),
      ("王伟", "prospect-王伟@psst.app"), ("👍", "prospect-unnamed@psst.app"),
      ("Ｆｕｌｌ", "prospect-full@psst.app"),
    ]
  )
  func addProspect(name: String, email: String) async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      let prospect = try await contacts.addProspect(name: name)
      #expect(prospect.placeholderEmail == email)
      #expect(try await contacts.getProspects() == [prospect])
      let stored = try await fixture.stored("contacts/tina/prospects/\(prospect.id)")
      #expect(
        Set(try #require(stored).keys) == [
          "id", "prospectId", "displayName", "placeholderEmail", "addedAt",
        ]
      )
    }
  }

  @Test(
    "A name that nobody could see, or of 10 KB, is no name",
    arguments: [
      "", " \n\t", "\u{200B}\u{2060}", "\u{3164}", "\u{301}", String(repeating: "x", count: 101),
      String(repeating: "ab", count: 5120),
    ]
  )
  func invalidName(name: String) async throws {
    try await PeopleFixture.run { fixture in
      let error = await #expect(throws: ContactError.self) {
        try await fixture.app("tina").contacts.addProspect(name: name)
      }
      #expect(error == .invalidName)
      #expect(error?.errorDescription == "Please enter a valid name")
    }
  }

  @Test("Prospects are listed with those added last first, observed, and deleted once")
  func prospects() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      var observed = contacts.observeProspects().makeAsyncIterator()
      #expect(try await observed.next()?.isEmpty == true)
      let anna = try await contacts.addProspect(name: "Anna")
      #expect(try await observed.next() == [anna])
      try await fixture.suite.clock.advance(by: .seconds(1))
      let ben = try await contacts.addProspect(name: "Ben")
      #expect(try await observed.next() == [ben, anna])
      try await contacts.deleteProspect(prospectId: anna.id)
      #expect(try await observed.next() == [ben])
      for id in [anna.id, "", "a/b"] {
        let error = await #expect(throws: ContactError.self) {
          try await contacts.deleteProspect(prospectId: id)
        }
        #expect(error == .prospectNotFound)
        #expect(error?.errorDescription == "Prospect not found")
      }
    }
  }

  // MARK: Upgrades

  @Test("A prospect who has signed up becomes a client, and stays out of the prospects")
  func upgrade() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      let prospect = try await contacts.addProspect(name: "Carl Jones")
      let client = try await contacts.upgradeProspectToClient(
        prospectId: prospect.id,
        email: "Carl@psst.app"
      )
      #expect(client.displayName == "Carl")
      #expect(try await contacts.getClients() == [client])
      #expect(try await contacts.getProspects() == [])
      let stored = try await fixture.stored("contacts/tina/prospects/\(prospect.id)")
      #expect(stored?["convertedToClientId"] == .string("carl"))
    }
  }

  @Test("Two upgrades at once make one client, and a repeated one returns it")
  func upgradeTwice() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      let id = try await contacts.addProspect(name: "Carl").id
      let clients = try await withThrowingTaskGroup(of: Client.self) { group in
        for _ in 0..<5 {
          group.addTask {
            try await contacts.upgradeProspectToClient(prospectId: id, email: "carl@psst.app")
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(Set(clients.map(\.addedAt)).count == 1)
      #expect(try await contacts.getClients() == [clients[0]])
      let again = try await contacts.upgradeProspectToClient(
        prospectId: id,
        email: "carl@psst.app"
      )
      #expect(again == clients[0])
    }
  }

  @Test("Two upgrades at once to different clients make one of them a client")
  func upgradeToTwo() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      let id = try await contacts.addProspect(name: "Carl").id
      let errors = await withTaskGroup(of: ContactError?.self) { group in
        for email in ["carl@psst.app", "cora@psst.app"] {
          group.addTask {
            do {
              try await contacts.upgradeProspectToClient(prospectId: id, email: email)
              return nil
            } catch {
              return error as? ContactError ?? .refused("\(error)")
            }
          }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      #expect(Set(errors) == [nil, .prospectNotFound])
      let clients = try await contacts.getClients().map(\.id)
      let stored = try await fixture.stored("contacts/tina/prospects/\(id)")
      #expect(clients.map { .string($0) } == [stored?["convertedToClientId"]])
    }
  }

  @Test("An upgrade whose confirmation is lost is found by the next call")
  func unheardUpgrade() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      let id = try await contacts.addProspect(name: "Carl").id
      fixture.line.decide { $0 == 1 ? .unheard : .none() }
      await #expect(throws: ContactError.networkError) {
        try await contacts.upgradeProspectToClient(prospectId: id, email: "carl@psst.app")
      }
      let client = try await contacts.upgradeProspectToClient(
        prospectId: id,
        email: "carl@psst.app"
      )
      #expect(try await contacts.getClients() == [client])
    }
  }

  @Test("What cannot be upgraded is refused, and changes nothing")
  func cannotUpgrade() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      try await contacts.addClient(email: "cora@psst.app")
      let id = try await contacts.addProspect(name: "Anna").id
      let path = "contacts/tina/prospects/\(id)"
      let before = try await fixture.stored(path)
      for (prospect, email, error) in [
        (id, "cora@psst.app", ContactError.alreadyExists), (id, "nobody@psst.app", .userNotFound),
        (id, "nowhere", .invalidEmail), (id, "tom@psst.app", .notAClient),
        ("unknown", "carl@psst.app", .prospectNotFound),
        ("a/b", "carl@psst.app", .prospectNotFound),
      ] {
        await #expect(throws: error) {
          try await contacts.upgradeProspectToClient(prospectId: prospect, email: email)
        }
      }
      #expect(try await fixture.stored(path) == before)
      #expect(try await contacts.getClients().map(\.id) == ["cora"])

      try await contacts.upgradeProspectToClient(prospectId: id, email: "carl@psst.app")
      await #expect(throws: ContactError.prospectNotFound) {
        try await contacts.upgradeProspectToClient(prospectId: id, email: "cleo@psst.app")
      }
      #expect(try await fixture.stored("contacts/tina/clients/cleo") == nil)
    }
  }

  // MARK: Search

  @Test(
    "Contacts are found by every word of the query, without regard to case and accents",
    arguments: [
      ("zoe", ["Zoë Brown"]), ("BROWN", ["Brownie Zoe", "Zoë Brown"]), ("müll", ["Max Müller"]),
      ("mull", ["Max Müller"]), ("brown z", ["Brownie Zoe", "Zoë Brown"]), ("王", ["王伟"]),
      ("ｍａｘ", ["Max Müller"]), ("nobody", []), (".*", []), ("o", ["Brownie Zoe", "Zoë Brown"]),
      (" ", ["王伟", "Brownie Zoe", "Max Müller", "Zoë Brown"]),
    ] as [(String, [String])]
  )
  func search(query: String, names: [String]) async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      for name in ["Zoë Brown", "Max Müller", "Brownie Zoe", "王伟"] {
        try await contacts.addProspect(name: name)
        try await fixture.suite.clock.advance(by: .seconds(1))
      }
      let found = try await contacts.searchContacts(query: query)
      if query == "zoe" {
        // The name that begins with the query comes first, whatever is newer.
        #expect(found.map(\.displayName) == ["Zoë Brown", "Brownie Zoe"])
      } else {
        #expect(found.map(\.displayName) == names)
      }
    }
  }

  @Test("A search covers clients and prospects")
  func searchBoth() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      try await contacts.addClient(email: "carl@psst.app")
      try await contacts.addProspect(name: "Carla")
      let found = try await contacts.searchContacts(query: "carl")
      #expect(found.count == 2)
      #expect(found.contains { $0 is Client } && found.contains { $0 is Prospect })
    }
  }

  @Test("A search reads the contacts every five seconds, and again after each own change")
  func searchWhileTyping() async throws {
    try await PeopleFixture.run { fixture in
      let time = Mutex(ContinuousClock.now)
      let firestore = fixture.line.firestore.acting(as: UnsignedTokens(uid: "tina"))
      let contacts = ContactService(
        firestore: firestore,
        uid: "tina",
        users: UserService(firestore: firestore, uid: "tina"),
        functions: Self.noFunctions,
        now: { time.withLock { $0 } }
      )
      func found() async throws -> [String] {
        try await contacts.searchContacts(query: "c").map(\.displayName)
      }
      #expect(try await found() == [])
      let carl = try await contacts.addClient(email: "carl@psst.app")
      #expect(try await found() == ["Carl"])
      // Another device adds a contact.
      try await fixture.app("tina").contacts.addClient(email: "cora@psst.app")
      #expect(try await found() == ["Carl"])
      fixture.line.setOffline(true)
      #expect(try await found() == ["Carl"])
      fixture.line.setOffline(false)
      time.withLock { $0 += .seconds(6) }
      #expect(try await Set(found()) == ["Carl", "Cora"])
      try await contacts.removeClient(clientId: carl.id)
      #expect(try await found() == ["Cora"])
    }
  }

  // MARK: Others

  @Test("A client has no contacts, whatever they try")
  func wrongUser() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("carl").contacts
      for call in [
        { try await contacts.addClient(email: "cora@psst.app") },
        { try await contacts.addProspect(name: "Anna") },
        { try await contacts.removeClient(clientId: "cora") },
      ] as [() async throws -> Any] {
        let error = await #expect(throws: ContactError.self) { _ = try await call() }
        #expect(error == .unauthorized)
        #expect(error?.errorDescription == "You are not authorized to perform this action")
      }
      let stored = try await fixture.ids("contacts/carl/clients")
      #expect(stored.isEmpty)
    }
  }

  @Test("Without a connection every call says so, and works when it is back")
  func offline() async throws {
    try await PeopleFixture.run { fixture in
      let contacts = fixture.app("tina").contacts
      fixture.line.setOffline(true)
      for call in [
        { try await contacts.addClient(email: "carl@psst.app") },
        { try await contacts.addProspect(name: "Anna") },
        { try await contacts.removeClient(clientId: "cora") }, { try await contacts.getClients() },
        { try await contacts.searchContacts(query: "a") },
        { try await contacts.deleteProspect(prospectId: "p") },
        { try await contacts.upgradeProspectToClient(prospectId: "p", email: "carl@psst.app") },
      ] as [() async throws -> Any] {
        let error = await #expect(throws: ContactError.self) { _ = try await call() }
        #expect(error == .networkError)
        #expect(error?.errorDescription == "No internet connection")
      }
      fixture.line.setOffline(false)
      try await contacts.addClient(email: "carl@psst.app")
    }
  }
}
