package import DocumentModel
package import DocumentStore
package import Identity
package import Logging
package import SecurityRules
import StatusCodes
import Synchronization

/// An access policy that applies security rules to every request except the administrator's.
///
/// A database's own rules take precedence over those of its project, and these over the rules for
/// every project. Without rules, everything is allowed. Denials are logged with the deciding rules,
/// and the latest decisions are kept.
package final class RulesPolicy: AccessPolicy {
  /// A ruleset in force, with its coverage since it was loaded.
  package struct Rules: Sendable {
    package let ruleset: Ruleset
    package let coverage = Coverage()

    package init(_ ruleset: Ruleset) { self.ruleset = ruleset }
  }

  /// The requests to which a ruleset applies.
  package enum Scope: Sendable, Hashable {
    /// Every project without its own rules.
    case everyProject
    case project(String)
    case database(DatabaseName)
  }

  // Every request needs each of these; with a single lock, requests would wait for each other.
  private let rules = Mutex(LoadedRules())
  private let recent = Mutex(RecentDecisions())
  private let requestAuth = RequestAuth()
  private let logger: Logger

  /// Creates a policy without rules, which allows everything.
  package init(logger: Logger) { self.logger = logger }

  // MARK: Rules

  /// Puts rules in force; the caller must have all listeners rechecked.
  ///
  /// The rules of another scope can be removed in the same step.
  package func load(_ ruleset: Ruleset, for scope: Scope, replacing former: Scope? = nil) {
    rules.withLock { rules in
      if let former { rules.remove(former) }
      rules.put(ruleset, for: scope)
    }
  }

  /// Puts rules in force that a client has sent; the caller must have all listeners rechecked.
  ///
  /// To make room, rules of projects other than `project` may be dropped, whose requests are then
  /// denied. Throws `RESOURCE_EXHAUSTED` if that is not enough.
  package func load(
    sent ruleset: Ruleset,
    for scope: Scope,
    keeping project: String
  ) throws {
    let dropped = rules.withLock { $0.put(ruleset, for: scope, keeping: project) }
    guard let dropped else {
      throw StatusError(
        .resourceExhausted,
        "Rules are loaded for too many projects. Restart the suite, or test with fewer projects."
      )
    }
    for scope in dropped {
      logger.warning(
        "Rules were dropped to make room for new ones; what they guarded is denied",
        metadata: ["scope": "\(scope)"]
      )
    }
  }

  /// Returns the rules of a database; nil if everything is allowed.
  package func rules(of database: DatabaseName) -> Rules? {
    rules.withLock { rules in
      rules[.database(database)] ?? rules[.project(database.project)] ?? rules[.everyProject]
    }
  }

  /// The latest decisions, most recent first.
  package var decisions: [RecentDecision] { recent.withLock { $0.latestFirst } }

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
    let ledger = AccessLedger(isSingle: documents.count == 1, isBrief: view.isBrief)
    let auth = requestAuth.value(auth)
    for (name, document) in documents {
      let request = RulesRequest(
        method: .get,
        path: Self.path(name),
        time: RuleTimestamp(view.requestTime),
        auth: auth,
        resource: Self.resource(document)
      )
      try decide(request, about: .document(name), by: rules, viewed, ledger)
    }
  }

  package func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws {
    guard let rules = rules(of: query.database) else { return }
    let documents = ViewedDocuments(view: view, database: query.database)
    let ledger = AccessLedger(isSingle: true, isBrief: view.isBrief)
    let auth = requestAuth.value(auth)
    let subject = RecentDecision.Subject.query(Self.title(query), query.database)
    for alternative in QueryAlternative.all(of: query) {
      let request = RulesRequest(
        method: .list,
        path: alternative.path,
        time: RuleTimestamp(view.requestTime),
        auth: auth,
        query: Self.value(of: query),
        constraints: [alternative.constraints]
      )
      try decide(request, about: subject, by: rules, documents, ledger)
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
    let ledger = AccessLedger(isSingle: writes.count == 1, isBrief: view.isBrief)
    let auth = requestAuth.value(auth)
    for change in Self.changes(writes) {
      guard let first = change.first, let last = change.last else { continue }
      let name = first.write.name
      var request = RulesRequest(
        method: Self.method(change.map(\.write), first.before, last.after),
        path: Self.path(name),
        time: RuleTimestamp(view.requestTime),
        auth: auth,
        resource: Self.resource(first.before)
      )
      if request.method != .get { request.newResource = Self.resource(last.after) }
      try decide(request, about: .document(name), by: rules, documents, ledger)
    }
  }

  /// Returns the writes of each document, in the order in which the documents first occur.
  ///
  /// Several writes of one document count as one change, from its state before the commit to the
  /// state after it.
  private static func changes(_ writes: [AccessWrite]) -> [[AccessWrite]] {
    guard writes.count > 1 else { return [writes] }
    var changes: [[AccessWrite]] = []
    var places: [DocumentName: Int] = [:]
    for write in writes {
      if let place = places[write.write.name] {
        changes[place].append(write)
      } else {
        places[write.write.name] = changes.count
        changes.append([write])
      }
    }
    return changes
  }

  /// Returns the kind of access to one document by a commit.
  ///
  /// An `exists` precondition determines the kind; otherwise the stored state does.
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

  // MARK: Decisions

  private func decide(
    _ request: RulesRequest,
    about subject: RecentDecision.Subject,
    by rules: Rules,
    _ documents: ViewedDocuments,
    _ ledger: AccessLedger
  ) throws {
    let decision = rules.ruleset.decide(
      request,
      documents: documents,
      ledger: ledger,
      coverage: rules.coverage
    )
    guard !ledger.isInsufficient else { throw LongDecisionError() }
    // One request can concern thousands of documents.
    try Task.checkCancellation()
    let recent = RecentDecision(
      time: request.time,
      method: request.method,
      subject: subject,
      auth: request.auth,
      decision: decision,
      ruleset: rules.ruleset
    )
    // The displaced decisions are freed after the lock is released.
    _ = self.recent.withLock { $0.add(recent) }
    // The rules' own output of `debug`.
    for line in decision.debugLines(in: rules.ruleset) { logger.notice("\(line)") }
    guard !decision.isAllowed else { return }
    // A line for the person who reads along, as the page on rules shows it.
    logger.notice(
      "\(request.method.rawValue) \(recent.path) is denied: \(decision.summary(in: rules.ruleset))"
    )
    throw StatusError(.permissionDenied, decision.message(for: request.method))
  }

  // MARK: Values

  private static func path(_ name: DocumentName) -> [RulesRequest.PathStep] {
    let prefix: [RulesRequest.PathStep] = [
      .known("databases"), .known(name.database.database), .known("documents"),
    ]
    return prefix + name.path.segments.map { .known($0) }
  }

  static func resource(_ document: FirestoreDocument?) -> RuleValue {
    guard let document else { return .null }
    return .map(.document(document))
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
}

/// The documents that rules read, as the request sees them.
private struct ViewedDocuments: RulesDocuments {
  let view: AccessView
  let database: DatabaseName

  func document(_ path: RulePath, after: Bool) throws -> RuleValue? {
    // The segments after `databases`, the database's ID and `documents`.
    let segments = Array(path.segments.dropFirst(3))
    let name = DocumentName(database: database, path: ResourcePath(segments))
    let document = after ? try view.documentAfter(name) : try view.document(name)
    return document.map { RulesPolicy.resource($0) }
  }
}
