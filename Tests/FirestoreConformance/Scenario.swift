import Foundation
import StatusCodes
import Testing

/// A sequence of calls on an empty database and their expected responses.
///
/// In requests and responses `$D` stands for the database's name and `$R` for its document root.
/// Other words with a dollar sign stand for values kept by earlier steps. Responses are compared
/// without times and tokens.
struct Scenario: Sendable, CustomTestStringConvertible {
  let title: String
  let steps: [Step]
  var testDescription: String { title }

  init(_ title: String, _ steps: [Step]) {
    self.title = title
    self.steps = steps
  }

  struct Step: Sendable {
    let rpc: RPC
    let request: String
    let expected: Expected
    var kept: [String: String] = [:]

    /// Returns this step, keeping the first value of `member` in the response as `name`.
    func keeping(_ member: String, as name: String) -> Step {
      var step = self
      step.kept[name] = member
      return step
    }
  }

  /// The expected outcome of a call.
  enum Expected: Sendable {
    case reply(String)
    case error(StatusCode, String)
    case anything
  }

  /// Runs the steps through a client.
  func run(through endpoint: any Endpoint) async throws {
    var words = ["$D": Self.database, "$R": "\(Self.database)/documents"]
    func filledIn(_ text: String) -> String {
      words.reduce(text) { $0.replacingOccurrences(of: $1.key, with: $1.value) }
    }
    for (number, step) in steps.enumerated() {
      let place: Comment = "step \(number): \(step.rpc.name) \(step.request)"
      do {
        let reply = try await endpoint.call(
          step.rpc,
          filledIn(step.request),
          authorization: "Bearer owner"
        )
        for (name, member) in step.kept {
          let object = try JSONSerialization.jsonObject(with: Data(reply.utf8))
          let value: String = try #require(JSON.first(member, in: object), place)
          words[name] = value
        }
        switch step.expected {
        case .reply(let expected):
          #expect(try JSON.normalized(reply) == JSON.normalized(filledIn(expected)), place)
        case .error(let code, _):
          Issue.record("\(place): expected \(code.name), got \(reply)")
        case .anything: break
        }
      } catch let error as StatusError {
        switch step.expected {
        case .error(let code, let message):
          #expect(error == StatusError(code, filledIn(message)), place)
        case .reply, .anything: Issue.record("\(place): \(error)")
        }
      }
    }
  }

  private static let database = "projects/demo-psst/databases/(default)"
}

extension Scenario.Step {
  /// A call that must return `reply`.
  static func ok(_ rpc: RPC, _ request: String, _ reply: String) -> Self {
    Self(rpc: rpc, request: request, expected: .reply(reply))
  }

  /// A call that must not fail.
  static func ok(_ rpc: RPC, _ request: String) -> Self {
    Self(rpc: rpc, request: request, expected: .anything)
  }

  /// A call that must fail with this code and message.
  static func fails(_ rpc: RPC, _ request: String, _ code: StatusCode, _ message: String) -> Self {
    Self(rpc: rpc, request: request, expected: .error(code, message))
  }

  /// Stores documents below the root from `path: fields` pairs in wire JSON.
  static func store(_ documents: KeyValuePairs<String, String>) -> Self {
    let writes = documents.map { #"{"update":{"name":"$R/\#($0)","fields":\#($1)}}"# }
    return ok(.commit, #"{"database":"$D","writes":[\#(writes.joined(separator: ","))]}"#)
  }

  /// Commits writes that must succeed.
  static func commit(_ writes: String) -> Self {
    ok(.commit, #"{"database":"$D","writes":[\#(writes)]}"#)
  }

  /// Reads a document that must have exactly these fields.
  static func document(_ path: String, _ fields: String) -> Self {
    let reply =
      fields == "{}" ? #"{"name":"$R/\#(path)"}"# : #"{"name":"$R/\#(path)","fields":\#(fields)}"#
    return ok(.getDocument, #"{"name":"$R/\#(path)"}"#, reply)
  }

  /// Reads a document that must not exist.
  static func missing(_ path: String) -> Self {
    fails(
      .getDocument,
      #"{"name":"$R/\#(path)"}"#,
      .notFound,
      #"Document "$R/\#(path)" not found."#
    )
  }

  /// Runs a query at the root that must find these documents in this order.
  static func query(_ query: String, finds ids: String...) -> Self {
    let replies = ids.map { #"{"document":{"name":"$R/\#($0)"}}"# }
    let keysOnly = #""select":{"fields":[{"fieldPath":"__name__"}]}"#
    return ok(
      .runQuery,
      #"{"parent":"$R","structuredQuery":{\#(keysOnly)\#(query.isEmpty ? "" : ",")\#(query)}}"#,
      replies.isEmpty ? "[{}]" : "[\(replies.joined(separator: ","))]"
    )
  }
}
