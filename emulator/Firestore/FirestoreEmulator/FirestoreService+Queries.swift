import DocumentModel
import DocumentStore
package import FirestoreProtos
import FirestoreWire
package import Identity
import RuntimeSupport
import SwiftProtobuf

extension FirestoreService {
  /// Runs a query and sends its results as they are found, a page at a time.
  ///
  /// An empty result is one message with only its read time. After an error some results may have
  /// been sent; a transaction that the query began has then ended.
  package func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    auth: AuthContext,
    _ send: (ReplyMessages<Google_Firestore_V1_RunQueryResponse>) async throws -> Void
  ) async throws {
    let (query, consistency) = try queryRequest(request)
    try await store.query(query, at: consistency, auth: auth) { page in
      try await send(Self.replies(with: page))
    }
  }

  /// Runs a query and collects its results, whose size is bounded.
  package func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    auth: AuthContext
  ) async throws -> ReplyMessages<Google_Firestore_V1_RunQueryResponse> {
    let (query, consistency) = try queryRequest(request)
    return Self.replies(with: try await store.query(query, at: consistency, auth: auth))
  }

  private func queryRequest(
    _ request: Google_Firestore_V1_RunQueryRequest
  ) throws -> (Query, ReadConsistency) {
    guard case .structuredQuery(let structured) = request.queryType else {
      throw StatusError.invalidArgument("only structured queries are supported")
    }
    guard !request.hasExplainOptions else { throw Self.explainUnimplemented }
    let query = try WireFormat.query(structured, parent: request.parent)
    note(query.database)
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .transaction(let id): .transaction(TransactionID(id))
      case .newTransaction(let options): .newTransaction(try transactionOptions(options))
      case .readTime(let time): .readTime(try WireFormat.commitTimestamp(time))
      case nil: .latest
      }
    return (query, consistency)
  }

  private static func replies(
    with page: QueryPage
  ) -> ReplyMessages<Google_Firestore_V1_RunQueryResponse> {
    let readTime = WireFormat.proto(page.readTime)
    let lead = page.newTransaction == nil ? 0 : 1
    let bodies = max(page.documents.count, 1)
    return ReplyMessages(count: lead + bodies, newTransaction: page.newTransaction) { index in
      .with { reply in
        guard index >= lead else {
          if let id = page.newTransaction { reply.transaction = id.data }
          return
        }
        let position = index - lead
        if position < page.documents.count {
          reply.document = WireFormat.proto(page.documents[position])
        }
        if position == 0 { reply.skippedResults = Int32(clamping: page.skipped) }
        reply.readTime = readTime
        if page.isLast, position == bodies - 1 { reply.done = true }
      }
    }
  }

  /// Counts, sums and averages over a query's results; the reply is one message.
  package func runAggregationQuery(
    _ request: Google_Firestore_V1_RunAggregationQueryRequest,
    auth: AuthContext
  ) async throws -> ReplyMessages<Google_Firestore_V1_RunAggregationQueryResponse> {
    guard case .structuredAggregationQuery(let structured) = request.queryType else {
      throw StatusError.invalidArgument("only structured aggregation queries are supported")
    }
    guard !request.hasExplainOptions else { throw Self.explainUnimplemented }
    let aggregations = try Aggregation.read(structured.aggregations)
    let query = try WireFormat.query(structured.structuredQuery, parent: request.parent)
    note(query.database)
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .transaction(let id): .transaction(TransactionID(id))
      case .newTransaction(let options): .newTransaction(try transactionOptions(options))
      case .readTime(let time): .readTime(try WireFormat.commitTimestamp(time))
      case nil: .latest
      }
    var evaluation = AggregationEvaluation(aggregations, of: query)
    var first: QueryPage?
    try await store.query(evaluation.baseQuery, asking: query, at: consistency, auth: auth) {
      page in
      evaluation.add(page)
      if first == nil { first = page }
    }
    let fields = WireFormat.proto(evaluation.results)
    let (readTime, newTransaction) = (first?.readTime, first?.newTransaction)
    return ReplyMessages(count: 1, newTransaction: newTransaction) { _ in
      .with {
        $0.result.aggregateFields = fields
        if let readTime { $0.readTime = WireFormat.proto(readTime) }
        if let newTransaction { $0.transaction = newTransaction.data }
      }
    }
  }

  private static let explainUnimplemented = StatusError(
    .unimplemented,
    "explain_options are not supported yet."
  )
}
