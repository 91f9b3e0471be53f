import DocumentModel
import Identity
import StatusCodes
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore

@Suite("Access")
struct AccessTests {
  /// A policy that gives users access to documents whose `owner` they are.
  ///
  /// A write requires this of the document before and after it, where the document exists.
  struct OwnerPolicy: AccessPolicy {
    static let denied = StatusError(.permissionDenied, "Missing or insufficient permissions.")

    private func require(_ document: FirestoreDocument?, _ auth: AuthContext) throws {
      guard case .user(let user) = auth, let document else { throw Self.denied }
      guard document.fields["owner"] == .string(user.uid) else { throw Self.denied }
    }

    func authorizeReads(
      _ documents: [(name: DocumentName, document: FirestoreDocument?)],
      auth: AuthContext,
      view: AccessView
    ) throws {
      for (_, document) in documents { try require(document, auth) }
    }

    func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws {
      throw Self.denied
    }

    func isOpen(_ database: DatabaseName) -> Bool { false }

    func authorize(_ request: AdministrativeRequest, in database: DatabaseName) throws {
      throw Self.denied
    }

    func authorizeWrites(
      _ writes: [AccessWrite],
      auth: AuthContext,
      view: AccessView
    ) throws {
      for write in writes {
        if write.before != nil { try require(write.before, auth) }
        if write.after != nil { try require(write.after, auth) }
        // Every write requires a log entry in the same commit.
        guard try view.documentAfter(name("log/entry")) != nil else { throw Self.denied }
        if let stamp = write.after?.fields["at"], stamp != .timestamp(view.requestTime) {
          throw Self.denied
        }
      }
    }
  }

  let user = AuthContext.user(UserIdentity(uid: "u1", claimsJSON: "{}"))
  let stranger = AuthContext.user(UserIdentity(uid: "u2", claimsJSON: "{}"))
  let mine: MapValue = ["owner": .string("u1")]

  @Test("The policy sees the state before and after a commit, and what it refuses leaves nothing")
  func writes() async throws {
    let fixture = StoreFixture(access: OwnerPolicy())
    let stamp = FieldTransform(path("at"), .requestTime)
    try await fixture.commit(
      set("log/entry", mine),
      set("c/d", mine, transforms: [stamp]),
      auth: user
    )
    #expect(
      await code { try await fixture.commit(delete("c/d"), auth: stranger) } == .permissionDenied
    )
    #expect(
      await code { try await fixture.commit(delete("log/entry"), auth: user) } == .permissionDenied
    )
    #expect(try await fixture.events().count == 1)
    try await fixture.commit(delete("log/entry"), auth: .admin)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("Access is decided before preconditions, and bad input before access")
  func orderOfChecks() async throws {
    let fixture = StoreFixture(access: OwnerPolicy())

    let failing = set("c/d", ["owner": .string("u1")], if: .exists(true))
    #expect(await code { try await fixture.commit(failing, auth: stranger) } == .permissionDenied)
    #expect(await code { try await fixture.commit(failing, auth: .admin) } == .notFound)
    #expect(
      await code { try await fixture.commit(failing, set("c/__x__"), auth: stranger) }
        == .invalidArgument
    )
  }

  @Test("Reads, queries and lists are asked for, but never the administrator's")
  func reads() async throws {
    let fixture = StoreFixture(access: OwnerPolicy())
    try await fixture.commit(set("c/d", mine))
    func outcomes(_ auth: AuthContext) async -> [StatusCode] {
      let lookUp = await code {
        try await fixture.store.lookUp([name("c/d")], mask: nil, at: .latest, auth: auth)
      }
      let query = await code {
        try await fixture.store.query(all("c"), at: .latest, auth: auth)
      }
      let list = await code {
        try await fixture.store.listDocuments(
          parent: ResourcePath(),
          collectionID: "c",
          database: database,
          pageSize: 0,
          pageToken: nil,
          orders: [],
          mask: nil,
          showMissing: false,
          at: .latest,
          auth: auth
        ).documents
      }
      let collections = await code {
        try await fixture.store.listCollectionIDs(
          parent: ResourcePath(),
          database: database,
          pageSize: 0,
          pageToken: nil,
          at: .latest,
          auth: auth
        ).collectionIDs
      }
      return [lookUp, query, list, collections]
    }

    #expect(await outcomes(.admin) == [.ok, .ok, .ok, .ok])
    let denied = StatusCode.permissionDenied
    #expect(await outcomes(user) == [.ok, denied, denied, denied])
    #expect(await outcomes(stranger) == [denied, denied, denied, denied])
  }

  @Test("A refused read leaves no transaction that it began")
  func refusedNewTransaction() async throws {
    let fixture = StoreFixture(access: OwnerPolicy())
    try await fixture.commit(set("c/d", mine))

    let outcome = await code {
      try await fixture.store.lookUp(
        [name("c/d")],
        mask: nil,
        at: .newTransaction(.readWrite()),
        auth: stranger
      )
    }

    #expect(outcome == .permissionDenied)
    #expect(fixture.store.transactions.withLock { $0.openCount } == 0)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A refused read in a transaction holds no locks", arguments: [false, true])
  func refusedReadInTransaction(isQuery: Bool) async throws {
    let fixture = StoreFixture(access: OwnerPolicy())
    try await fixture.commit(set("c/d", mine))
    let transaction = try await fixture.begin()

    let outcome = await code {
      if isQuery {
        return try await fixture.store.query(
          all("c"),
          at: .transaction(transaction),
          auth: stranger
        ).documents.count
      }
      return try await fixture.store.lookUp(
        [name("c/d")],
        mask: nil,
        at: .transaction(transaction),
        auth: stranger
      ).documents.count
    }

    #expect(outcome == .permissionDenied)
    #expect(fixture.store.locks.isEmpty)
    // The transaction can still read permitted documents.
    _ = try await fixture.store.lookUp(
      [name("c/d")],
      mask: nil,
      at: .transaction(transaction),
      auth: user
    )
  }

  @Test("A reader who loses the permission while waiting for locks is refused and holds none")
  func refusedAfterWait() async throws {
    let fixture = StoreFixture(access: MemberPolicy())
    try await fixture.commit(set("members/u1", [:]), set("c/d", mine))
    let (first, second) = (try await fixture.begin(), try await fixture.begin())
    _ = try await fixture.get("c/d", at: .transaction(first))
    async let write = fixture.commit(set("c/d", mine))
    await fixture.waitForLockWaiters(1)
    // Readers queue behind a waiting writer.
    async let refused = code {
      try await fixture.store.lookUp(
        [name("c/d")],
        mask: nil,
        at: .transaction(second),
        auth: user
      )
    }
    await fixture.waitForLockWaiters(2)

    try await fixture.commit(delete("members/u1"))
    try await fixture.store.rollback(first, database: database)

    _ = try await write
    #expect(await refused == .permissionDenied)
    #expect(fixture.store.locks.isEmpty)
  }
}

/// A policy under which users with a document `members/{uid}` may read, and everyone may write.
final class MemberPolicy: AccessPolicy {
  /// A hook called before each decision.
  let willDecide = Mutex<(@Sendable () -> Void)?>(nil)
  /// True to refuse everything.
  let isShut = Mutex(false)

  func isOpen(_ database: DatabaseName) -> Bool { false }

  func authorizeReads(
    _ documents: [(name: DocumentName, document: FirestoreDocument?)],
    auth: AuthContext,
    view: AccessView
  ) throws {
    try require(auth, view)
  }

  func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws {
    try require(auth, view)
  }

  private func require(_ auth: AuthContext, _ view: AccessView) throws {
    let isShut = isShut.withLock(\.self)
    willDecide.withLock(\.self)?()
    guard !isShut, case .user(let user) = auth,
      try view.document(name("members/\(user.uid)")) != nil
    else { throw AccessTests.OwnerPolicy.denied }
  }

  func authorize(_ request: AdministrativeRequest, in database: DatabaseName) throws {}

  func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) throws {}
}
