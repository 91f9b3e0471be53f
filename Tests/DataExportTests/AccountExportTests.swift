import AuthAccounts
import EventLog
import Foundation
import StatusCodes
import StorageEngine
import Testing
import TestSupport

@testable import DataExport

/// Users in exports, in Firebase's own form.
@Suite("Exports of users")
struct AccountExportTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func user(_ id: String, _ email: String? = nil) -> UserAccount {
    var user = UserAccount(localId: id)
    user.email = email
    return user
  }

  private func users(_ fixture: Fixture) async throws -> [UserAccount] {
    try await fixture.accounts.read { view in
      var users: [UserAccount] = []
      try view.users { user in
        users.append(user)
        return true
      }
      return users
    }
  }

  /// Writes a folder that claims to be an export of Firebase's emulators.
  private func official(_ accounts: String, config: String? = nil) throws -> String {
    let path = folder.path + "/official"
    try FileManager.default.createDirectory(
      atPath: path + "/auth_export",
      withIntermediateDirectories: true
    )
    let files = [
      "firebase-export-metadata.json":
        #"{"version":"13.0.0","auth":{"version":"13.0.0","path":"auth_export"}}"#,
      "auth_export/accounts.json": accounts, "auth_export/config.json": config,
    ]
    for (name, text) in files {
      try text?.write(toFile: "\(path)/\(name)", atomically: true, encoding: .utf8)
    }
    return path
  }

  @Test("Users and settings come back whole, however many pages they need")
  func roundTrip() async throws {
    let source = Fixture()
    var special = user("special", "ä@e.example")
    special.customAttributes = #"{"role":"trainer"}"#
    special.providerUserInfo = [ProviderAccount(providerId: "google.com", rawId: "g1")]
    special.passwordHash = "scrypt:1024:8:1:abc"
    special.salt = "salt"
    special.validSince = "12"
    let made = [special] + (0..<1201).map { user("u\($0)", "u\($0)@e.example") }
    try await source.accounts.change { change in for user in made { try change.put(user) } }
    try await source.accounts.change { change in
      change.set(ProjectSettings(signIn: .init(allowDuplicateEmails: true)))
    }
    let path = folder.path + "/export"
    let exported = try await source.exporter.exportAll(of: "p", to: path, replaces: false)
    #expect(exported.users == 1202)

    let target = Fixture()
    let imported = try await target.importer.import(path, .init())
    #expect(imported.users == 1202)
    #expect(try await users(target) == users(source))
    #expect(
      try await target.accounts.read { try $0.settings() }.signIn.allowDuplicateEmails == true
    )
    let records = try await target.storage.read {
      try CommitLog.records(after: 0, limit: 10, in: $0)
    }
    #expect(records.isEmpty, "an import causes no events")
  }

  @Test("An export of Firebase's emulators is imported, and its passwords match")
  func officialForm() async throws {
    let path = try official(
      """
      {"kind":"identitytoolkit#DownloadAccountResponse","users":[{"localId":"tina",
      "createdAt":"1700000000000","lastLoginAt":"1700000000001","displayName":"Tina","photoUrl":"",
      "passwordHash":"fakeHash:salt=fakeSaltX:password=secret1","salt":"fakeSaltX",
      "passwordUpdatedAt":1700000000000,"customAttributes":"{\\"a\\":1}","emailVerified":true,
      "providerUserInfo":[{"providerId":"password","email":"t@e.example","federatedId":"t@e.example",
      "rawId":"t@e.example","displayName":"Tina","photoUrl":""}],"validSince":"1700000000",
      "email":"t@e.example","disabled":false,"somethingNew":{}}]}
      """,
      config:
        #"{"signIn":{"allowDuplicateEmails":false},"usageMode":"DEFAULT","blockingFunctions":{}}"#
    )
    let fixture = Fixture()
    #expect(try await fixture.importer.import(path, .init()).users == 1)
    let stored = try await fixture.accounts.read { try $0.user(with: .email("t@e.example")) }
    let tina = try #require(stored)
    #expect(tina.passwordUpdatedAt == 1_700_000_000_000)
    #expect(try PasswordHash.matches("secret1", tina))
  }

  @Test(
    "An import replaces users of the same id, and keeps others unless it is told to replace all"
  )
  func replacement() async throws {
    let fixture = Fixture()
    let before = [user("a", "a@e.example"), user("other", "o@e.example")]
    try await fixture.accounts.change { change in for user in before { try change.put(user) } }
    let path = try official(#"{"users":[{"localId":"a","email":"new@e.example"}]}"#)
    _ = try await fixture.importer.import(path, .init())
    #expect(try await users(fixture).map(\.email) == ["new@e.example", "o@e.example"])
    _ = try await fixture.importer.import(path, .init(replaces: true))
    #expect(try await users(fixture).map(\.localId) == ["a"])
  }

  @Test("Imported users may have exchanged their addresses")
  func exchange() async throws {
    let fixture = Fixture()
    let before = [user("a", "a@e.example"), user("b", "b@e.example")]
    try await fixture.accounts.change { change in for user in before { try change.put(user) } }
    let path = try official(
      #"{"users":[{"localId":"a","email":"b@e.example"},{"localId":"b","email":"a@e.example"}]}"#
    )
    _ = try await fixture.importer.import(path, .init())
    #expect(try await users(fixture).map(\.email) == ["b@e.example", "a@e.example"])
  }

  @Test(
    "A malformed or incomplete file is refused with its place, and nothing is written",
    arguments: [
      (#"{"users":[{"localId":"a"}"#, "it may have been cut"),
      (#"[]"#, "not a JSON object"), (#"{"users":{}}"#, "is not a list"),
      (#"{"users":[{"localId":"a"},{"email":"x"}]}"#, "users[1] is not a user"),
      (#"{"users":[{"localId":""}]}"#, "users[0] is not valid: INVALID_LOCAL_ID"),
      (#"{"users":[{"localId":"a","email":"x"}]}"#, "users[0] is not valid: INVALID_EMAIL"),
      (
        #"{"users":[{"localId":"a","createdAt":"9223372036854775807"}]}"#,
        "users[0] is not valid: INVALID_TIME"
      ),
      (
        #"{"users":[{"localId":"a","customAttributes":"{\"sub\":1}"}]}"#,
        "users[0] is not valid: FORBIDDEN_CLAIM : sub"
      ),
      (#"{"users":[{"localId":"a"},{"localId":"a"}]}"#, "users[1] has the localId of another"),
      (
        #"{"users":[{"localId":"a","email":"X@y.z"},{"localId":"b","email":"x@y.z"}]}"#,
        "users[1] has the address x@y.z of users[0]"
      ),
    ]
  )
  func malformed(text: String, problem: String) async throws {
    let fixture = Fixture()
    let path = try official(text)
    let error = await #expect(throws: StatusError.self) {
      try await fixture.importer.import(path, .init())
    }
    #expect(error?.statusMessage.contains(problem) == true, "\(error?.statusMessage ?? "")")
    #expect(try await users(fixture).isEmpty)
    #expect(try await DataImporter.unfinished(in: fixture.storage).isEmpty)
  }

  @Test("A user who stays and has an imported user's address is named, and nothing is written")
  func taken() async throws {
    let fixture = Fixture()
    let other = user("other", "x@e.example")
    try await fixture.accounts.change { try $0.put(other) }
    let path = try official(#"{"users":[{"localId":"a","email":"x@e.example"}]}"#)
    let error = await #expect(throws: StatusError.self) {
      try await fixture.importer.import(path, .init())
    }
    #expect(error?.statusCode == .failedPrecondition)
    #expect(error?.statusMessage.contains("belongs to the user other") == true)
    #expect(try await users(fixture).map(\.localId) == ["other"])
  }

  @Test("The folder of users cannot lead out of the export")
  func outside() async throws {
    let path = try official("{}")
    let metadata = #"{"version":"1","auth":{"version":"1","path":"../auth_export"}}"#
    try metadata.write(
      toFile: path + "/firebase-export-metadata.json",
      atomically: true,
      encoding: .utf8
    )
    let fixture = Fixture()
    await #expect(throws: StatusError.self) { try await fixture.importer.import(path, .init()) }
  }
}
