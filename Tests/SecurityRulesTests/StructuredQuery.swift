import DocumentModel
import Foundation

import TestSupport
@testable import SecurityRules

/// A query in the clients' JSON format, and the rules request for it.
struct StructuredQuery: Decodable {
  struct Source: Decodable {
    var collectionId: String
    var allDescendants: Bool?
  }

  struct Field: Decodable {
    var fieldPath: String
  }

  struct Order: Decodable {
    var field: Field
    var direction: String
  }

  indirect enum Filter: Decodable {
    case composite(isOr: Bool, [Filter])
    case field(String, String, RuleValue)

    private struct Content: Decodable {
      var op: String
      var field: Field?
      var value: Value?
      var filters: [Filter]?
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      let content = try container.decode([String: Content].self).values.first
      guard let content else { throw UnreadableError() }
      if let filters = content.filters {
        self = .composite(isOr: content.op == "OR", filters)
      } else if let field = content.field {
        self = .field(field.fieldPath, content.op, content.value?.value ?? .null)
      } else {
        throw UnreadableError()
      }
    }
  }

  struct Value: Decodable {
    var value: RuleValue

    private struct Content: Decodable {
      var booleanValue: Bool?
      var integerValue: String?
      var doubleValue: Double?
      var stringValue: String?
      var referenceValue: String?
      var arrayValue: [String: [Value]]?
      var mapValue: [String: [String: Value]]?
    }

    init(from decoder: any Decoder) throws {
      let content = try Content(from: decoder)
      if let bool = content.booleanValue {
        value = .bool(bool)
      } else if let int = content.integerValue {
        value = .int(Int64(int) ?? 0)
      } else if let float = content.doubleValue {
        value = .float(float)
      } else if let text = content.stringValue {
        value = .string(text)
      } else if let name = content.referenceValue {
        // Paths in rules omit the project.
        value = .path(RulePath(name.split(separator: "/").dropFirst(2).map(String.init)))
      } else if let elements = content.arrayValue?["values"] {
        value = .list(elements.map(\.value))
      } else if let fields = content.mapValue?["fields"] {
        value = .map(.entries(fields.mapValues(\.value)))
      } else {
        value = .null
      }
    }
  }

  struct UnreadableError: Error {}

  var from: [Source]
  var `where`: Filter?
  var limit: Int64?
  var offset: Int64?
  var orderBy: [Order]?

  /// A short text for messages, also matched by the list of differences.
  var text: String {
    func text(_ filter: Filter) -> String {
      switch filter {
      case .composite(let isOr, let filters):
        "(" + filters.map(text).joined(separator: isOr ? " OR " : " AND ") + ")"
      case .field(let path, let test, let value): "\(path) \(test) \(value.literal)"
      }
    }
    return [
      from.first?.collectionId ?? "", `where`.map(text) ?? "", limit.map { "limit \($0)" } ?? "",
      offset.map { "offset \($0)" } ?? "", orderBy.map { "by \($0.count)" } ?? "",
    ].joined(separator: " ")
  }

  /// The facts that a filter establishes for every result, in one of its alternatives.
  private struct Alternative {
    var predicates: [QueryConstraints.Predicate] = []
    /// The ID of the results, if the filter determines it.
    var identifier: String?

    func and(_ other: Alternative) -> Alternative {
      Alternative(
        predicates: predicates + other.predicates,
        identifier: identifier ?? other.identifier
      )
    }
  }

  private static func alternatives(_ filter: Filter) -> [Alternative] {
    switch filter {
    case .composite(true, let filters): return filters.flatMap(alternatives)
    case .composite(false, let filters):
      return filters.map(alternatives).reduce([Alternative()]) { found, next in
        found.flatMap { left in next.map { left.and($0) } }
      }
    case .field(let name, let test, let value):
      func each(_ test: String) -> [Alternative] {
        guard case .list(let values) = value else { return [Alternative()] }
        return values.flatMap { alternatives(.field(name, test, $0)) }
      }
      let path = name.split(separator: ".").map(String.init)
      func only(_ test: QueryConstraints.Predicate.Test) -> [Alternative] {
        [Alternative(predicates: [.init(path: path, test: test, value: value)])]
      }
      if name == "__name__", test == "EQUAL", case .path(let path) = value {
        return [Alternative(identifier: path.segments.last)]
      }
      switch test {
      case "IN": return each("EQUAL")
      case "ARRAY_CONTAINS_ANY": return each("ARRAY_CONTAINS")
      case "EQUAL", "IS_NULL": return only(.equal)
      case "NOT_EQUAL", "IS_NOT_NULL": return only(.notEqual)
      case "NOT_IN": return only(.notIn)
      case "ARRAY_CONTAINS": return only(.contains)
      case "LESS_THAN": return only(.less)
      case "LESS_THAN_OR_EQUAL": return only(.lessOrEqual)
      case "GREATER_THAN": return only(.greater)
      case "GREATER_THAN_OR_EQUAL": return only(.greaterOrEqual)
      default: return [Alternative()]
      }
    }
  }

  /// Indicates whether rules for all documents of a database allow the query.
  func isAllowed(by rules: String, signedIn: Bool) throws -> Bool {
    let ruleset = try Ruleset(
      name: "f.rules",
      content: SampleRules.documents(rules)
    )
    let order = (orderBy ?? []).map { ($0.field.fieldPath, RuleValue.string($0.short)) }
    let query: [String: RuleValue] = [
      "limit": limit.map(RuleValue.int) ?? .null, "offset": .int(offset ?? 0),
      "orderBy": .map(.entries(Dictionary(order) { $1 })),
    ]
    let alternatives = `where`.map(Self.alternatives) ?? [Alternative()]
    return alternatives.allSatisfy { alternative in
      var path = ["databases", "(default)", "documents"].map { RulesRequest.PathStep.known($0) }
      if from[0].allDescendants == true { path.append(.anyStretch) }
      path.append(.known(from[0].collectionId))
      path.append(alternative.identifier.map { .known($0) } ?? .unknown)
      let request = RulesRequest(
        method: .list,
        path: path,
        time: RuleTimestamp(Timestamp(microseconds: 0)),
        auth: signedIn
          ? .map(.entries(["uid": .string("alice"), "token": .map(.entries([:]))])) : .null,
        resource: .queried(QueriedPart(names: [])),
        query: .map(.entries(query)),
        constraints: [QueryConstraints(alternative.predicates)]
      )
      return ruleset.decide(
        request,
        documents: Documents(),
        ledger: AccessLedger(isSingle: true)
      ).isAllowed
    }
  }

  /// The only document that rules of the table look up.
  private struct Documents: RulesDocuments {
    func document(_ path: RulePath, after: Bool) throws -> RuleValue? {
      guard path.text == "/databases/(default)/documents/teams/t1" else { return nil }
      return .map(.entries(["data": .map(.entries(["ok": .bool(true)]))]))
    }
  }
}

extension StructuredQuery.Order {
  fileprivate var short: String { direction == "DESCENDING" ? "DESC" : "ASC" }
}
