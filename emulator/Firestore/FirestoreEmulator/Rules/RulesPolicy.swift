package import DocumentModel
package import DocumentStore
package import Identity
package import Logging
import RuntimeSupport
package import SecurityRules
import Synchronization

/// Lets security rules decide on every request that is not the administrator's.
///
/// Rules of a database go before those of its project, and these before those of every project.
/// Without any, everything is allowed. Refusals are logged with what decided, and the last decisions are kept.
package final class RulesPolicy: AccessPolicy {
  /// Rules that are in force, with what their expressions have been since.
  package struct Rules: Sendable {
    package let ruleset: Ruleset
    package let coverage = Coverage()

    /// Rules that nobody has asked yet.
    package init(_ ruleset: Ruleset) { self.ruleset = ruleset }
  }

  /// Whose requests some rules decide.
  package enum Scope: Sendable, Hashable {
    /// Every project without rules of its own.
    case everyProject
    case project(String)
    case database(DatabaseName)
  }

  private struct State {
    var rules: [Scope: Rules] = [:]
    var decisions = RecentDecisions()
    /// The claims of tokens seen lately.
    var claims: [String: RuleValue] = [:]
  }

  /// Claims that are kept as values.
  private static let claimsMax = 256

  private let state = Mutex(State())
  private let logger: Logger

  /// A policy without rules, which allows everything.
  package init(logger: Logger) { self.logger = logger }

  // MARK: Rules

  /// Puts rules in force; whoever listens has to be asked again.
  ///
  /// Those of another scope can be dropped in the same step.
  package func load(_ ruleset: Ruleset, for scope: Scope, replacing former: Scope? = nil) {
    state.withLock { state in
      if let former { state.rules[former] = nil }
      state.rules[scope] = Rules(ruleset)
    }
  }

  /// The rules of a database; nil where everything is allowed.
  package func rules(of database: DatabaseName) -> Rules? {
    state.withLock { state in
      state.rules[.database(database)] ?? state.rules[.project(database.project)]
        ?? state.rules[.everyProject]
    }
  }

  /// The last decisions, the latest first.
  package var decisions: [RecentDecision] { state.withLock { $0.decisions.latestFirst } }

  // MARK: AccessPolicy

  package func isOpen(_ database: DatabaseName) -> Bool { rules(of: database) == nil }

  package func authorizeReads(
    _ documents: [(name: DocumentName, document: FirestoreDocument?)],
    auth: AuthContext,
    view: AccessView
  ) throws {
    guard let database = documents.first?.name.database, let rules = rules(of: database) else {
      return
    }
    let viewed = ViewedDocuments(view: view, database: database)
    let ledger = AccessLedger(isSingle: documents.count == 1)
    for (name, document) in documents {
      let request = RulesRequest(
        method: .get,
        path: Self.path(name),
        time: RuleTimestamp(view.requestTime),
        auth: value(auth),
        resource: Self.resource(document)
      )
      try decide(request, about: name.path.description, by: rules, viewed, ledger)
    }
  }

  package func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws {
    guard let rules = rules(of: query.database) else { return }
    let documents = ViewedDocuments(view: view, database: query.database)
    let ledger = AccessLedger(isSingle: true)
    for alternative in QueryAlternative.all(of: query) {
      let request = RulesRequest(
        method: .list,
        path: alternative.path,
        time: RuleTimestamp(view.requestTime),
        auth: value(auth),
        query: Self.value(of: query),
        constraints: [alternative.constraints]
      )
      try decide(request, about: Self.title(query), by: rules, documents, ledger)
    }
  }

  package func authorize(_ request: AdministrativeRequest, in database: DatabaseName) throws {
    guard !isOpen(database) else { return }
    let what =
      switch request {
      case .listCollections, .listMissingDocuments: "Metadata operations require"
      case .batchWrite: "Batch writes require"
      case .partition: "Partitioning a query requires"
      case .explain: "Explaining a query requires"
      }
    throw StatusError(.permissionDenied, "\(what) admin authentication.")
  }

  package func authorizeWrites(
    _ writes: [AccessWrite],
    auth: AuthContext,
    view: AccessView
  ) throws {
    guard let database = writes.first?.write.name.database, let rules = rules(of: database) else {
      return
    }
    let documents = ViewedDocuments(view: view, database: database)
    let ledger = AccessLedger(isSingle: writes.count == 1)
    // Several writes of one document are one change of it, from before the commit to after it.
    let byName = Dictionary(grouping: writes, by: \.write.name)
    var names: Set<DocumentName> = []
    for write in writes where names.insert(write.write.name).inserted {
      let name = write.write.name
      let all = byName[name] ?? []
      let before = write.before
      let after = all.last?.after
      var request = RulesRequest(
        method: Self.method(all.map(\.write), before, after),
        path: Self.path(name),
        time: RuleTimestamp(view.requestTime),
        auth: value(auth),
        resource: Self.resource(before)
      )
      if request.method != .get { request.newResource = Self.resource(after) }
      try decide(request, about: name.path.description, by: rules, documents, ledger)
    }
  }

  /// What a commit does with one document; a precondition says it before what is stored does.
  private static func method(
    _ writes: [Write],
    _ before: FirestoreDocument?,
    _ after: FirestoreDocument?
  ) -> AccessMethod {
    let changes = writes.filter { if case .verify = $0.operation { false } else { true } }
    guard let first = changes.first else { return .get }
    guard after != nil else { return .delete }
    switch first.precondition {
    case .exists(true): return .update
    case .exists(false): return .create
    default: return before == nil ? .create : .update
    }
  }

  // MARK: Deciding

  private func decide(
    _ request: RulesRequest,
    about title: String,
    by rules: Rules,
    _ documents: ViewedDocuments,
    _ ledger: AccessLedger
  ) throws {
    let database = documents.database
    let isDefault = database == DatabaseName(project: database.project)
    let title = isDefault ? title : "\(title) in database \(database.database)"
    let decision = rules.ruleset.decide(
      request,
      documents: documents,
      ledger: ledger,
      coverage: rules.coverage
    )
    state.withLock { state in
      state.decisions.add(
        RecentDecision(
          time: request.time,
          method: request.method,
          path: title,
          auth: request.auth,
          decision: decision,
          ruleset: rules.ruleset
        )
      )
    }
    guard !decision.isAllowed else { return }
    logger.notice(
      "\(request.method.rawValue) \(title) is denied: \(decision.summary(in: rules.ruleset))"
    )
    throw StatusError(.permissionDenied, decision.message(for: request.method))
  }

  // MARK: Values

  private static func path(_ name: DocumentName) -> [RulesRequest.PathStep] {
    RulePath(name).segments.map { .known($0) }
  }

  static func resource(_ document: FirestoreDocument?) -> RuleValue {
    guard let document else { return .null }
    return .map(
      .entries([
        "data": .map(.fields(document.fields)), "id": .string(document.name.id),
        "__name__": .path(RulePath(document.name)),
      ])
    )
  }

  private static func value(of query: Query) -> RuleValue {
    var orders: [String: RuleValue] = [:]
    for order in query.orders where !order.path.isDocumentID {
      orders[order.path.segments.joined(separator: ".")] = .string(
        order.descending ? "DESC" : "ASC"
      )
    }
    return .map(
      .entries([
        "limit": query.limit.map { .int(Int64($0)) } ?? .null,
        "offset": .int(Int64(query.offset)), "orderBy": .map(.entries(orders)),
      ])
    )
  }

  private static func title(_ query: Query) -> String {
    let collection = query.collectionID ?? "*"
    let parent = query.parent.segments.isEmpty ? "" : "\(query.parent)/"
    return query.allDescendants ? "\(parent)**/\(collection)" : parent + collection
  }

  private func value(_ auth: AuthContext) -> RuleValue {
    guard case .user(let user) = auth else { return .null }
    if let known = state.withLock({ $0.claims[user.claimsJSON] }) { return known }
    let value = RuleValue.map(
      .entries(["uid": .string(user.uid), "token": ClaimsReader.value(user.claimsJSON)])
    )
    state.withLock { state in
      if state.claims.count >= Self.claimsMax { state.claims.removeAll() }
      state.claims[user.claimsJSON] = value
    }
    return value
  }
}

/// The documents that rules look at, as the request sees them.
private struct ViewedDocuments: RulesDocuments {
  let view: AccessView
  let database: DatabaseName

  func document(_ path: RulePath, after: Bool) throws -> RuleValue? {
    let segments = path.segments
    guard segments.count > 3, segments.count.isMultiple(of: 2) == false,
      segments[0] == "databases", segments[2] == "documents"
    else {
      throw StatusError.invalidArgument("The path is not that of a document.")
    }
    guard segments[1] == database.database else {
      throw StatusError.invalidArgument("The path is that of another database.")
    }
    // What cannot be a document's name is none's.
    guard
      !segments.dropFirst(3).contains(where: {
        ResourceID.flaw(of: $0, isCollection: false) != nil
      })
    else { return nil }
    let name = DocumentName(database: database, path: ResourcePath(Array(segments.dropFirst(3))))
    let document = after ? try view.documentAfter(name) : try view.document(name)
    return document.map { RulesPolicy.resource($0) }
  }
}
