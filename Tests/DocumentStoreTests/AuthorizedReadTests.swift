import DocumentModel
import Identity
import Testing

@testable import DocumentStore

@Suite("Reads that a policy allows")
struct AuthorizedReadTests {
  private let user = AuthContext.user(UserIdentity(uid: "u1", claimsJSON: "{}"))

  @Test("A document that changes while its reader waits for locks is read as it is then")
  func changedDuringWait() async throws {
    let fixture = StoreFixture(access: MemberPolicy())
    try await fixture.commit(set("members/u1", [:]), set("c/d", ["n": .integer(1)]))
    let (first, second) = (try await fixture.begin(), try await fixture.begin())
    _ = try await fixture.get("c/d", at: .transaction(first))
    async let write = fixture.commit(set("c/d", ["n": .integer(2)]))
    await fixture.waitForLockWaiters(1)
    async let read = fixture.store.lookUp(
      [name("c/d")],
      mask: nil,
      at: .transaction(second),
      auth: user
    )
    await fixture.waitForLockWaiters(2)

    try await fixture.store.rollback(first, database: database)

    _ = try await write
    #expect(try await read.documents.first?.document?.fields["n"] == .integer(2))
  }
}
