import Foundation
import RuntimeSupport
import Testing

/// Calls made one after the other on an empty database, and what each must answer.
///
/// In requests and replies `$D` stands for the database's name, `$R` for its root, and other words
/// with a dollar for what an earlier step kept. Replies are compared without times and tokens.
struct Scenario: Sendable, CustomTestStringConvertible {
  let title: String
  let steps: [Step]
  var testDescription: String { title }

  init(_ title: String, _ steps: [Step]) {
    self.title = title
    self.steps = steps
  }

  /// One call.
  struct Step: Sendable {
    let rpc: RPC
    let request: String
    let expected: Expected
    var kept: [String: String] = [:]

    /// Keeps a member of the reply, wherever it is, under a name.
    func keeping(_ member: String, as name: String) -> Step {
      var step = self
      step.kept[name] = member
      return step
    }
  }

  /// What a call must come to.
  enum Expected: Sendable {
    case reply(String)
    case error(StatusCode, String)
    case anything
  }

  /// Runs the steps through a door.
  func run(through door: any Door) async throws {
    var words = ["$D": Self.database, "$R": "\(Self.database)/documents"]
    func filledIn(_ text: String) -> String {
      words.reduce(text) { $0.replacingOccurrences(of: $1.key, with: $1.value) }
    }
    for (number, step) in steps.enumerated() {
      let place: Comment = "step \(number): \(step.rpc.name) \(step.request)"
      do {
        let reply = try await door.call(
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
  /// A call that must answer so.
  static func ok(_ rpc: RPC, _ request: String, _ reply: String) -> Self {
    Self(rpc: rpc, request: request, expected: .reply(reply))
  }

  /// A call that must not fail.
  static func ok(_ rpc: RPC, _ request: String) -> Self {
    Self(rpc: rpc, request: request, expected: .anything)
  }

  /// A call that must fail so.
  static func fails(_ rpc: RPC, _ request: String, _ code: StatusCode, _ message: String) -> Self {
    Self(rpc: rpc, request: request, expected: .error(code, message))
  }

  /// Stores documents below the root from `path: fields` pairs in the wire's form.
  static func store(_ documents: KeyValuePairs<String, String>) -> Self {
    let writes = documents.map { #"{"update":{"name":"$R/\#($0)","fields":\#($1)}}"# }
    return ok(.commit, #"{"database":"$D","writes":[\#(writes.joined(separator: ","))]}"#)
  }

  /// Commits writes that must succeed.
  static func commit(_ writes: String) -> Self {
    ok(.commit, #"{"database":"$D","writes":[\#(writes)]}"#)
  }

  /// Reads a document, which must have these fields.
  static func document(_ path: String, _ fields: String) -> Self {
    let reply =
      fields == "{}" ? #"{"name":"$R/\#(path)"}"# : #"{"name":"$R/\#(path)","fields":\#(fields)}"#
    return ok(.getDocument, #"{"name":"$R/\#(path)"}"#, reply)
  }

  /// Reads a document, which must be missing.
  static func missing(_ path: String) -> Self {
    fails(
      .getDocument,
      #"{"name":"$R/\#(path)"}"#,
      .notFound,
      #"Document "$R/\#(path)" not found."#
    )
  }

  /// Runs a query at the root, which must find these documents of a collection in this order.
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
