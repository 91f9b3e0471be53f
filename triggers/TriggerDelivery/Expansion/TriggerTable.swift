import DocumentModel
package import Events
package import Manifests
import StatusCodes

/// The table of triggers that finds the functions to run for an event.
///
/// It is built once per deployment and then only read. An event is delivered to every function
/// whose trigger matches, so two functions with the same pattern both run.
package struct TriggerTable: Sendable {
  /// The document triggers by the id of the watched collection, ordered by function name.
  private var triggers: [String: [DocumentTrigger]] = [:]
  /// The document triggers whose collection id is a wildcard, ordered by function name.
  private var wildTriggers: [DocumentTrigger] = []
  /// The triggers of the Realtime Database, ordered by function name.
  private var valueTriggers: [ValueTrigger] = []
  /// The triggers of other events by type, ordered by function name.
  private var eventTriggers: [String: [EventTrigger]] = [:]

  /// Reads the event triggers of a deployment's functions; other triggers are ignored.
  ///
  /// Throws a `StatusConvertible` that names a function with an invalid trigger.
  package init(functions: [String: FunctionEndpoint]) throws {
    for (name, endpoint) in functions.sorted(by: { $0.key < $1.key }) {
      guard let trigger = endpoint.eventTrigger else { continue }
      let attributes = trigger.eventFilters.merging(trigger.eventFilterPathPatterns ?? [:]) { $1 }
      if let type = DatabaseEventType(name: trigger.eventType) {
        let pattern = try DatabasePattern(filters: attributes)
        valueTriggers.append(ValueTrigger(function: name, kind: type.kind, pattern: pattern))
        continue
      }
      guard let type = DocumentEventType(name: trigger.eventType) else {
        eventTriggers[trigger.eventType, default: []].append(
          try EventTrigger(function: name, trigger)
        )
        continue
      }
      guard let document = attributes["document"] else {
        throw StatusError.invalidArgument(
          "The trigger of function \(name) has no \"document\" filter; add the path it watches."
        )
      }
      let found = DocumentTrigger(
        function: name,
        type: type,
        database: attributes["database"] ?? "(default)",
        pattern: try PathPattern(document)
      )
      if let collection = found.pattern.collectionID {
        triggers[collection, default: []].append(found)
      } else {
        wildTriggers.append(found)
      }
    }
  }

  /// Returns the triggers that match a change, ordered by function name.
  ///
  /// `project` is the project of the functions; changes in other projects match none. Examines only
  /// triggers that watch the document's collection id or any collection.
  package func matches(_ change: DocumentChange, project: String) -> [DocumentTrigger] {
    guard change.name.database.project == project else { return [] }
    let path = change.name.path
    let collection = path.segments.dropLast().last ?? ""
    let fitting = ((triggers[collection] ?? []) + wildTriggers).filter { trigger in
      trigger.type.kind.includes(change.kind)
        && trigger.database == change.name.database.database
        && trigger.pattern.match(path) != nil
    }
    return fitting.count < 2 ? fitting : fitting.sorted { $0.function < $1.function }
  }

  /// The nodes of the Realtime Database that functions watch.
  package var databasePatterns: DatabaseTriggerPatterns {
    DatabaseTriggerPatterns(valueTriggers.map(\.pattern))
  }

  /// Returns the changed nodes that functions watch, one for each function and node.
  ///
  /// A node has the same number for all functions. Sets `lost` if functions get no event for a node
  /// that they watch.
  func matches(
    _ change: DatabaseChange,
    lost: inout ValueMatch.Loss?
  ) throws(CorruptDataError) -> [ValueMatch] {
    let triggers = valueTriggers.filter { $0.pattern.matches(instance: change.instance) }
    guard !triggers.isEmpty else { return [] }
    let parsed = try change.parsed()
    // Not by `String`, whose forms of one letter are equal.
    var known: [ResourcePath: (number: UInt32, change: DatabaseChange)] = [:]
    var matches: [ValueMatch] = []
    for trigger in triggers {
      let limit = ValueMatch.nodesMax
      let pattern = trigger.pattern.ref
      let paths = parsed.nodes(matching: pattern, limit: limit + 1)
      if paths.count > limit {
        lost = .tooMany
      } else if paths.isEmpty, pattern.depth(atOrAbove: change.path) != nil {
        lost = .recordedBelow
      }
      for path in paths.prefix(limit) {
        let key = ResourcePath(path)
        let number = UInt32(known.count)
        let node = known[key] ?? (number, change.narrowed(to: path, parsed))
        known[key] = node
        guard trigger.kind.includes(node.change.kind) else { continue }
        matches.append(
          ValueMatch(
            function: trigger.function,
            kind: trigger.kind,
            node: node.number,
            change: node.change
          )
        )
      }
    }
    return matches
  }

  /// Returns the functions that want an event of another service, ordered by name.
  package func functions(for event: CloudEvent) -> [String] {
    (eventTriggers[event.type] ?? []).filter { $0.matches(event) }.map(\.function)
  }
}

/// A function's trigger for document events.
package struct DocumentTrigger: Sendable, Hashable {
  package var function: String
  package var type: DocumentEventType
  /// The database's id, such as `(default)`.
  package var database: String
  package var pattern: PathPattern
}

/// A function's trigger for changes in the Realtime Database.
struct ValueTrigger: Sendable, Hashable {
  var function: String
  var kind: ChangeKind
  var pattern: DatabasePattern
}

/// A changed node that a function watches.
struct ValueMatch: Sendable, Hashable {
  var function: String
  /// The kind that the function's trigger names.
  var kind: ChangeKind
  /// The number of the node among the nodes of the change that functions watch.
  var node: UInt32
  /// The change, narrowed to the node.
  var change: DatabaseChange

  /// Why a function gets no event for a node that it watches.
  enum Loss: Sendable {
    /// One change has more such nodes than `nodesMax`; the first in the order of their keys count.
    case tooMany
    /// The change was recorded before the function was known, below the node that it watches.
    case recordedBelow
  }

  /// The maximum number of nodes of one change for one function.
  ///
  /// Production allows 1000 functions to run for one write.
  static let nodesMax = 1000
}

/// A function's trigger for events of one type, of neither documents nor values.
package struct EventTrigger: Sendable, Hashable {
  package var function: String
  package var type: String
  /// Attributes that must be equal to a value.
  package var filters: [String: String]
  /// Attributes that must match a pattern.
  package var patterns: [String: PathPattern]

  init(function: String, _ trigger: FunctionEndpoint.EventTrigger) throws {
    self.function = function
    type = trigger.eventType
    filters = trigger.eventFilters
    patterns = try (trigger.eventFilterPathPatterns ?? [:]).mapValues {
      try PathPattern($0, ofDocuments: false)
    }
  }

  func matches(_ event: CloudEvent) -> Bool {
    event.type == type && filters.allSatisfy { event.attribute($0.key) == $0.value }
      && patterns.allSatisfy { name, pattern in
        event.attribute(name).map { pattern.match(ResourcePath(slashSeparated: $0)) != nil }
          ?? false
      }
  }
}
