import DocumentModel
import HeapModule
import Identity
import QueryEngine
import StatusCodes

extension DocumentDatabase {
  /// The maximum number of found documents whose contents are in memory at a time.
  private static let foundPage = 50

  /// Finds the documents of a query that are nearest to a vector, and returns them in pages.
  ///
  /// All vectors of the query's results are compared in double precision, at one read time.
  /// Documents at equal distances are ordered by name. The search keeps only names and distances;
  /// the found documents are then read at the same read time. Throws `FAILED_PRECONDITION` for the
  /// cosine distance of a zero vector, as production does.
  func find(
    _ search: FindNearest,
    in prepared: PreparedQuery,
    asking asked: Query,
    at consistency: ReadConsistency,
    auth: AuthContext,
    _ body: (QueryPage) async throws -> Void
  ) async throws {
    var candidates = prepared.query
    candidates.findNearest = nil
    candidates.projection = [search.field]
    var nearest = NearestDocuments(search)
    var first: QueryPage?
    var scanned = 0
    try await query(candidates, asking: asked, at: consistency, auth: auth) { page in
      for document in page.documents { try nearest.add(document) }
      if first == nil { first = page }
      scanned = page.scanned
    }
    guard var first else { throw StatusError(.internal, "A query has at least one page.") }
    first.scanned = scanned
    var isHandedOut = false
    do {
      try await handOut(nearest.inOrder, prepared, search, first, at: consistency) { page in
        isHandedOut = true
        try await body(page)
      }
    } catch let error as StatusError
      where error == Self.tooOld && consistency == .latest && !isHandedOut
    {
      // The database was reset after the search.
      try await find(search, in: prepared, asking: asked, at: consistency, auth: auth, body)
    } catch {
      if let id = first.newTransaction { abandon(id) }
      throw error
    }
  }

  private func handOut(
    _ found: [NearestDocuments.Element],
    _ prepared: PreparedQuery,
    _ search: FindNearest,
    _ first: QueryPage,
    at consistency: ReadConsistency,
    _ body: (QueryPage) async throws -> Void
  ) async throws {
    var rest = found[...]
    var page = first
    let moment: ReadConsistency =
      switch consistency {
      case .transaction: consistency
      case .newTransaction: first.newTransaction.map { .transaction($0) } ?? consistency
      case .latest, .readTime: .readTime(first.readTime)
      }
    repeat {
      let part = rest.prefix(Self.foundPage)
      rest = rest.dropFirst(part.count)
      page.documents = []
      if !part.isEmpty {
        let result = try await lookUp(
          part.map(\.name),
          mask: nil,
          database: prepared.query.database,
          at: moment,
          // The query has already been authorized.
          auth: .admin
        )
        for (found, entry) in zip(part, result.documents) {
          guard var document = entry.document else {
            throw StatusError(.internal, "A document that was found is not there.")
          }
          if let name = search.resultField { document.fields[name] = .double(found.distance) }
          page.documents.append(prepared.project(document))
        }
      }
      page.isLast = rest.isEmpty
      try await body(page)
      page.newTransaction = nil
    } while !rest.isEmpty
  }
}

/// The nearest documents so far, up to the limit of the search.
private struct NearestDocuments {
  struct Element: Comparable {
    var name: DocumentName
    var distance: Double
    /// The sort key of the distance; nearer documents have smaller ranks.
    var rank: Double

    static func < (left: Element, right: Element) -> Bool {
      left.rank == right.rank ? left.name < right.name : left.rank < right.rank
    }
  }

  private let search: FindNearest
  private var heap = Heap<Element>()

  init(_ search: FindNearest) { self.search = search }

  mutating func add(_ document: FirestoreDocument) throws {
    guard case .vector(let vector) = document.fields[search.field] else { return }
    let found: Double?
    do throws(FindNearest.ZeroVectorError) {
      found = try search.distance(of: vector)
    } catch {
      throw StatusError(
        .failedPrecondition,
        "Cannot compute cosine distance against a vector with a magnitude of zero.",
        details: [.errorInfo(reason: "COSINE_DISTANCE_ON_ZERO_VECTOR")]
      )
    }
    guard let distance = found else { return }
    let element = Element(
      name: document.name,
      distance: distance,
      rank: search.rank(distance)
    )
    if heap.count < search.limit {
      heap.insert(element)
    } else if let last = heap.max, element < last {
      heap.replaceMax(with: element)
    }
  }

  var inOrder: [Element] { heap.unordered.sorted() }
}
