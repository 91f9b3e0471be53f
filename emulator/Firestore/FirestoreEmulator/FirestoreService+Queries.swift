import DocumentModel
import DocumentStore
package import FirestoreProtos
package import FirestoreWire
import HTTPSupport
package import Identity
import StatusCodes
import SwiftProtobuf

extension FirestoreService {
  /// Runs a query and sends its results as they are found, a page at a time.
  ///
  /// An empty result is one message with its read time. If an error is thrown, some results may
  /// have been sent, and a transaction that the query began has ended. With explain options, the
  /// last message has the metrics; without `analyze`, it is the only message.
  package func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    auth: AuthContext,
    counting count: (_ heldBytes: Int) throws -> Void,
    _ send: (StreamReplies<QueryReply>) async throws -> Void
  ) async throws {
    let (query, consistency) = try queryRequest(request)
    var explanation = try explanation(request.hasExplainOptions, of: query, auth)
    if explanation == nil || request.explainOptions.analyze {
      try await store.query(query, at: consistency, auth: auth, counting: count) { page in
        explanation?.add(page)
        try await send(Self.replies(with: page, explanation: page.isLast ? explanation : nil))
      }
    } else if let explanation {
      try await send(Self.reply(with: explanation))
    }
  }

  /// Runs a query and collects its results, whose total size is limited.
  package func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    auth: AuthContext
  ) async throws -> StreamReplies<QueryReply> {
    let (query, consistency) = try queryRequest(request)
    guard var explanation = try explanation(request.hasExplainOptions, of: query, auth) else {
      return Self.replies(with: try await collected(query, at: consistency, auth))
    }
    guard request.explainOptions.analyze else { return Self.reply(with: explanation) }
    let page = try await collected(query, at: consistency, auth)
    explanation.add(page)
    return Self.replies(with: page, explanation: explanation)
  }

  /// Collects a query's results, whose memory the budget of all transfers counts.
  private func collected(
    _ query: Query,
    at consistency: ReadConsistency,
    _ auth: AuthContext
  ) async throws -> QueryPage {
    let hold = budget.map { TransferHold($0, isForResults: true) {} }
    // The client has nothing to do yet.
    hold?.clientIsDone()
    func collect() async throws -> QueryPage {
      try await store.collect(query, at: consistency, auth: auth) { bytes in
        if let hold, !hold.set(bytes) { throw hold.budget.error.exhausted }
      }
    }
    return consistency.isInTransaction ? try await collect() : try await gather(collect)
  }

  private func explanation(
    _ isWanted: Bool,
    of query: Query,
    _ auth: AuthContext
  ) throws -> QueryExplanation? {
    isWanted ? QueryExplanation(plan: try store.plan(query, auth: auth)) : nil
  }

  private static func reply(with explanation: QueryExplanation) -> StreamReplies<QueryReply> {
    var reply = QueryReply()
    reply.explainMetrics = explanation.metrics
    return StreamReplies(count: 1) { [reply] _ in reply }
  }

  private func queryRequest(
    _ request: Google_Firestore_V1_RunQueryRequest
  ) throws -> (Query, ReadConsistency) {
    guard case .structuredQuery(let structured) = request.queryType else {
      throw StatusError.invalidArgument("only structured queries are supported")
    }
    let query = try WireFormat.query(structured, parent: request.parent)
    note(query.database)
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .transaction(let id): .transaction(TransactionID(id))
      case .newTransaction(let options): .newTransaction(try readingOptions(options))
      case .readTime(let time): .readTime(try WireFormat.commitTimestamp(time))
      case nil: .latest
      }
    return (query, consistency)
  }

  private static func replies(
    with page: QueryPage,
    explanation: QueryExplanation? = nil
  ) -> StreamReplies<QueryReply> {
    // The transaction and the number of skipped results are sent in separate messages.
    var leads: [QueryReply] = []
    if let id = page.newTransaction {
      var reply = QueryReply()
      reply.transaction = id.bytes
      leads.append(reply)
    }
    if page.skipped > 0 || page.documents.isEmpty {
      var reply = QueryReply()
      reply.skippedResults = Int32(clamping: page.skipped)
      reply.readTime = page.readTime
      leads.append(reply)
    }
    let count = leads.count + page.documents.count
    let metrics = explanation?.metrics
    return StreamReplies(
      count: count,
      newTransaction: page.newTransaction,
      heldBytes: page.heldBytes,
      keptBytes: page.keptBytes
    ) { [leads] index in
      var reply = QueryReply()
      if index < leads.count {
        reply = leads[index]
      } else {
        reply.document = page.documents[index - leads.count]
        reply.readTime = page.readTime
      }
      if index == count - 1 { reply.explainMetrics = metrics }
      return reply
    }
  }

  /// Counts, sums and averages over a query's results; the response is one message.
  ///
  /// With explain options it has the metrics, and no result unless `analyze` is set.
  package func runAggregationQuery(
    _ request: Google_Firestore_V1_RunAggregationQueryRequest,
    auth: AuthContext
  ) async throws -> StreamReplies<Google_Firestore_V1_RunAggregationQueryResponse> {
    guard case .structuredAggregationQuery(let structured) = request.queryType else {
      throw StatusError.invalidArgument("Only structured aggregation queries are supported.")
    }
    let aggregations = try Aggregation.read(structured.aggregations)
    let query = try WireFormat.query(structured.structuredQuery, parent: request.parent)
    note(query.database)
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .transaction(let id): .transaction(TransactionID(id))
      case .newTransaction(let options): .newTransaction(try readingOptions(options))
      case .readTime(let time): .readTime(try WireFormat.commitTimestamp(time))
      case nil: .latest
      }
    let start = try AggregationEvaluation(aggregations, of: query)
    let plan = try explanation(request.hasExplainOptions, of: start.baseQuery, auth)
    if let plan, !request.explainOptions.analyze {
      return StreamReplies(count: 1) { _ in .with { $0.explainMetrics = plan.metrics } }
    }
    var evaluation = start
    var explanation = plan
    var first: QueryPage?
    try await store.repeatingInterrupted(at: consistency) {
      (evaluation, explanation, first) = (start, plan, nil)
      try await store.query(start.baseQuery, asking: query, at: consistency, auth: auth) { page in
        evaluation.add(page)
        explanation?.add(page)
        if first == nil { first = page }
      }
    }
    explanation?.isOfAggregation = true
    let metrics = explanation?.metrics
    let fields = WireFormat.proto(evaluation.results)
    let (readTime, newTransaction) = (first?.readTime, first?.newTransaction)
    return StreamReplies(count: 1, newTransaction: newTransaction) { _ in
      .with {
        $0.result.aggregateFields = fields
        if let readTime { $0.readTime = WireFormat.proto(readTime) }
        if let newTransaction { $0.transaction = newTransaction.data }
        if let metrics { $0.explainMetrics = metrics }
      }
    }
  }

  /// Splits a collection group into parts that clients read in parallel; returns one page of them.
  package func partitionQuery(
    _ request: Google_Firestore_V1_PartitionQueryRequest,
    auth: AuthContext
  ) async throws -> Google_Firestore_V1_PartitionQueryResponse {
    guard case .structuredQuery(let structured) = request.queryType else {
      throw StatusError.invalidArgument("only structured queries are supported")
    }
    let query = try WireFormat.query(structured, parent: request.parent)
    note(query.database)
    let readTime: Timestamp? =
      switch request.consistencySelector {
      case .readTime(let time): try WireFormat.commitTimestamp(time)
      case nil: nil
      }
    let page = try await store.partition(
      query,
      count: Int(clamping: request.partitionCount),
      pageSize: Int(request.pageSize),
      pageToken: request.pageToken,
      readTime: readTime,
      auth: auth
    )
    return .with {
      $0.partitions = page.points.map { name in
        .with { $0.values = [WireFormat.proto(.reference(name))] }
      }
      $0.nextPageToken = page.nextPageToken ?? ""
    }
  }

  /// The error for a pipeline, as from a database of the Standard edition.
  static let pipelinesUnimplemented = StatusError(
    .unimplemented,
    "Pipelines need Firestore's Enterprise edition; this is a database of the Standard edition. Use "
      + "queries and aggregation queries."
  )
}
