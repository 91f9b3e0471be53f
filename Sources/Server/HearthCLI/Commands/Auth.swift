import ArgumentParser
import AuthAccounts
import JSONText

/// `hearth auth`: shows and changes the users of the suite's Auth service.
struct Auth: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show, create, change and delete users of the Auth emulator.",
    discussion: """
      A user is named by the uid or the e-mail address.

        hearth auth create tina@example.com --password secret1 --claims '{"role": "trainer"}'
        hearth auth list
        hearth auth token tina@example.com
        hearth auth claims tina@example.com '{"role": "client"}'
        hearth auth delete tina@example.com
        hearth call chatWithAI --as tina@example.com --data '{"question": "Who is new?"}'
      """,
    subcommands: [Create.self, List.self, Token.self, Claims.self, Delete.self]
  )

  /// `hearth auth create`.
  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Create a user and print the uid.",
      discussion: "  hearth auth create tina@example.com --password secret1 --name Tina"
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The e-mail address; without one, the user has only a uid.")
    var email: String?

    @Option(help: "The password, of at least 6 characters.")
    var password: String?

    @Option(help: "The uid; by default a random one.")
    var uid: String?

    @Option(help: "The name to show.")
    var name: String?

    @Option(help: ArgumentHelp("Custom claims, as a JSON object.", valueName: "json"))
    var claims: String?

    @Flag(help: "Mark the address as verified.")
    var verified = false

    func run() async throws {
      if let claims { try JSONInput.checkObject(claims, option: "--claims") }
      let client = try await AuthClient(try await suite.connect())
      struct Reply: Decodable { var localId: String }
      var body = JSONObjectText()
      body.set("email", email)
      body.set("password", password)
      body.set("localId", uid)
      body.set("displayName", name)
      if verified { body.set("emailVerified", true) }
      body.set("customAttributes", claims)
      Terminal.print(try await client.send("accounts", body, as: Reply.self).localId)
    }
  }

  /// `hearth auth list`.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List users, ordered by uid.",
      discussion: "  hearth auth list --json"
    )

    @OptionGroup var suite: SuiteLocation

    @Option(help: "At most so many.")
    var limit = 100

    @Flag(help: "Print JSON, one user a line.")
    var json = false

    func validate() throws {
      guard limit > 0 else { throw ValidationError("--limit is \(limit); give 1 or more.") }
    }

    func run() async throws {
      let client = try await AuthClient(try await suite.connect())
      var users: [UserAccount] = []
      var next: String?
      repeat {
        let page = try await client.page(after: next)
        users += page.users
        next = page.next
      } while next != nil && users.count < limit
      let isCut = next != nil || users.count > limit
      users = Array(users.prefix(limit))
      if json {
        for user in users {
          let text = try user.redacted.jsonBytes()
          Terminal.print(json: String(decoding: text, as: UTF8.self))
        }
        return
      }
      guard !users.isEmpty else {
        return Terminal.print("There are no users; `hearth auth create` makes one.")
      }
      let rows = users.map { user in
        [
          user.localId, user.email ?? user.phoneNumber ?? "",
          user.providers.joined(separator: ","),
          user.isDisabled ? "disabled" : "", user.customAttributes ?? "",
        ]
      }
      Terminal.print(
        Terminal.table(["UID", "EMAIL OR PHONE", "PROVIDERS", "STATE", "CLAIMS"], rows)
      )
      if isCut { Terminal.note("There are more users; --limit shows them.") }
    }
  }

  /// `hearth auth token`.
  struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print an ID token of a user, for curl and other clients.",
      discussion: """
          curl -H "Authorization: Bearer $(hearth auth token tina@example.com)" …
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The uid or the address.")
    var user: String

    func run() async throws {
      let client = try await AuthClient(try await suite.connect())
      Terminal.print(try await client.token(of: try await client.existingUser(user)))
    }
  }

  /// `hearth auth claims`.
  struct Claims: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show the custom claims of a user, or replace them.",
      discussion: """
          hearth auth claims tina@example.com
          hearth auth claims tina@example.com '{"role": "trainer"}'

        Tokens have new claims once they are refreshed.
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The uid or the address.")
    var user: String

    @Argument(help: ArgumentHelp("The new claims, as a JSON object.", valueName: "json"))
    var claims: String?

    func run() async throws {
      if let claims { try JSONInput.checkObject(claims, option: "The claims") }
      let client = try await AuthClient(try await suite.connect())
      let user = try await client.existingUser(user)
      guard let claims else { return Terminal.print(json: user.customClaims) }
      var update = JSONObjectText()
      update.set("localId", user.localId)
      update.set("customAttributes", claims)
      _ = try await client.send("accounts:update", update)
    }
  }

  /// `hearth auth delete`.
  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Delete users; functions get the events of their deletion.",
      discussion: "  hearth auth delete tina@example.com"
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The uids or the addresses.")
    var users: [String]

    func run() async throws {
      let client = try await AuthClient(try await suite.connect())
      // All are looked up first, so that a misspelled one leaves the others.
      var ids: [String] = []
      for name in users {
        let id = try await client.existingUser(name).localId
        if !ids.contains(id) { ids.append(id) }
      }
      for id in ids {
        var body = JSONObjectText()
        body.set("localId", id)
        _ = try await client.send("accounts:delete", body)
      }
      Terminal.print("Deleted \(counted(ids.count, "user")).")
    }
  }
}

extension UserAccount {
  /// The ids of the providers that the user can sign in with; none for an anonymous user.
  fileprivate var providers: [String] {
    (providerUserInfo ?? []).map(\.providerId) + (customAuth == true ? ["custom"] : [])
  }
}
