import DocumentModel
package import Events
package import Invocation
import RuntimeSupport

/// Which deployed function wants which change of a document.
///
/// Made once a deployment and then only read. A change goes to every function whose trigger fits,
/// each under its own name, so two functions on one pattern both run.
package struct TriggerTable: Sendable {
  /// The document triggers, in the order of the functions' names.
  package private(set) var triggers: [DocumentTrigger]

  /// Reads the document triggers among a deployment's functions; others are passed over.
  ///
  /// Throws a `StatusConvertible` that names the function whose trigger makes no sense.
  package init(functions: [String: FunctionEndpoint]) throws {
    triggers = []
    for (name, endpoint) in functions.sorted(by: { $0.key < $1.key }) {
      guard let trigger = endpoint.eventTrigger else { continue }
      guard let kind = DocumentEventKind(eventType: trigger.eventType) else { continue }
      let attributes = trigger.eventFilters.merging(trigger.eventFilterPathPatterns ?? [:]) { $1 }
      guard let document = attributes["document"] else {
        throw StatusError.invalidArgument(
          "The trigger of function \(name) has no \"document\" filter; add the path it watches."
        )
      }
      triggers.append(
        DocumentTrigger(
          function: name,
          kind: kind,
          database: attributes["database"] ?? "(default)",
          pattern: try PathPattern(document),
          retries: trigger.retry
        )
      )
    }
  }

  /// The triggers that fit a change, in the order of the functions' names.
  package func matches(_ change: DocumentChange) -> [DocumentTrigger] {
    triggers.filter { trigger in
      trigger.kind.includes(change.kind) && trigger.database == change.name.database.database
        && trigger.pattern.match(change.name.path) != nil
    }
  }
}

/// One function's interest in documents.
package struct DocumentTrigger: Sendable, Hashable {
  package var function: String
  package var kind: DocumentEventKind
  /// The database's id, such as `(default)`.
  package var database: String
  package var pattern: PathPattern
  /// Whether a failing handler is tried again.
  package var retries: Bool
}
