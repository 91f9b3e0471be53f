import DocumentModel
import HTTPSupport
import HTTPTypes

/// The operation that a REST request's method and path select.
enum RESTRoute: Hashable {
  case liveness
  case reset(DatabaseName)
  case export(project: String)
  /// The security rules of a project, or of one of its databases, as text.
  case readRules(RulesPolicy.Scope)
  case loadRules(RulesPolicy.Scope)
  /// The coverage of a project's rules.
  case coverage(project: String, isPage: Bool)
  /// A request of a stream's WebChannel.
  case channel(ChannelMethod)
  /// The name is as spelled in the path, not validated.
  case getDocument(name: String)
  case updateDocument(name: String)
  case deleteDocument(name: String)
  case listDocuments(parent: String, collectionID: String)
  case createDocument(parent: String, collectionID: String)
  /// A verb that applies to a whole database.
  case database(DatabaseVerb, name: String)
  /// A verb that applies to a document or the root as parent.
  case parent(ParentVerb, name: String)

  /// The bidirectional streams, which web pages use over WebChannel.
  enum ChannelMethod: String, Hashable {
    case listen = "Listen"
    case write = "Write"
  }

  /// The verbs that follow only `documents`.
  enum DatabaseVerb: String, Hashable {
    case batchGet, beginTransaction, commit, rollback, batchWrite, executePipeline
  }

  /// The verbs that follow `documents` or a document.
  enum ParentVerb: String, Hashable {
    case runQuery, runAggregationQuery, partitionQuery, listCollectionIds
  }

  /// True if the response, or an error, is an array.
  var isStreamed: Bool {
    switch self {
    case .database(.batchGet, _), .database(.executePipeline, _), .parent(.runQuery, _),
      .parent(.runAggregationQuery, _):
      true
    default: false
    }
  }

  /// True if the request is completed even if its client disconnects before the response.
  ///
  /// A program that writes and exits immediately expects its write to be made.
  var outlivesClient: Bool {
    switch self {
    case .updateDocument, .deleteDocument, .createDocument, .database(.commit, _),
      .database(.batchWrite, _), .database(.rollback, _), .reset, .loadRules:
      true
    default: false
    }
  }

  /// Creates the route for a method and a percent-encoded path; nil if there is none.
  init?(method: HTTPRequest.Method, path: String) {
    if path == "/" {
      guard method == .get else { return nil }
      self = .liveness
      return
    }
    guard var segments = Self.decoded(path) else { return nil }
    if Self.isChannel(path), segments.count == 3 {
      guard let method = ChannelMethod(rawValue: segments[1]) else { return nil }
      self = .channel(method)
      return
    }
    if segments.starts(with: ["emulator", "v1"]) {
      if method == .post, segments.count == 4, segments[2] == "projects",
        segments[3].hasSuffix(Self.exportSuffix)
      {
        self = .export(project: String(segments[3].dropLast(Self.exportSuffix.count)))
        return
      }
      if let route = RESTRoute(rules: segments, method) {
        self = route
        return
      }
      guard method == .delete, segments.count == 7, segments[6] == "documents",
        let database = DatabaseName(segments[2..<6].joined(separator: "/"))
      else { return nil }
      self = .reset(database)
      return
    }
    guard segments.first == "v1", segments.count >= 6, segments[1] == "projects",
      segments[3] == "databases"
    else { return nil }

    // An escaped colon belongs to an ID, so the verb is looked for in the path as sent.
    if method == .post, let colon = path.lastIndex(of: ":") {
      let verb = String(path[path.index(after: colon)...])
      if let rest = Self.decoded(String(path[..<colon])), rest.count >= 6, rest[5] == "documents" {
        if let verb = DatabaseVerb(rawValue: verb), rest.count == 6 {
          self = .database(verb, name: rest[1..<5].joined(separator: "/"))
          return
        }
        // In production, a verb after a root collection is part of the collection's name.
        if let verb = ParentVerb(rawValue: verb), rest.count != 7 {
          self = .parent(verb, name: rest.dropFirst().joined(separator: "/"))
          return
        }
      }
    }
    guard segments[5] == "documents", segments.count > 6 else { return nil }
    segments.removeFirst()
    self.init(method: method, documentPath: segments)
  }

  /// Returns true if a path is that of a WebChannel; its names are those of the gRPC methods.
  static func isChannel(_ path: String) -> Bool {
    path.hasPrefix("/google.firestore.v1.Firestore/") && path.hasSuffix("/channel")
  }

  private static let exportSuffix = ":export"

  /// Creates the route for a scope's rules from a path's segments, starting with `emulator`.
  private init?(rules segments: [String], _ method: HTTPRequest.Method) {
    guard segments.count == 4 || segments.count == 6, segments[2] == "projects",
      let last = segments.last, let colon = last.lastIndex(of: ":")
    else { return nil }
    let id = String(last[..<colon])
    let scope: RulesPolicy.Scope
    if segments.count == 4 {
      scope = .project(id)
    } else {
      guard segments[4] == "databases" else { return nil }
      scope = .database(DatabaseName(project: segments[3], database: id))
    }
    switch (last[last.index(after: colon)...], method) {
    case ("securityRules", .put): self = .loadRules(scope)
    case ("securityRules", .get): self = .readRules(scope)
    case ("ruleCoverage", .get) where segments.count == 4:
      self = .coverage(project: id, isPage: false)
    case ("ruleCoverage.html", .get) where segments.count == 4:
      self = .coverage(project: id, isPage: true)
    default: return nil
    }
  }

  /// Creates the route for a path that starts with `projects` and has segments after `documents`.
  private init?(method: HTTPRequest.Method, documentPath segments: [String]) {
    let name = segments.joined(separator: "/")
    let parent = segments.dropLast().joined(separator: "/")
    let id = segments[segments.count - 1]
    switch method {
    // A name that ends in a slash counts as a document's name, which is then refused.
    case .get where segments.count.isMultiple(of: 2) && !id.isEmpty:
      self = .listDocuments(parent: parent, collectionID: id)
    case .get: self = .getDocument(name: name)
    case .post: self = .createDocument(parent: parent, collectionID: id)
    case .patch: self = .updateDocument(name: name)
    case .delete: self = .deleteDocument(name: name)
    default: return nil
    }
  }

  /// Returns the decoded segments after the first slash; nil if an escape is malformed.
  private static func decoded(_ path: String) -> [String]? {
    guard path.utf8.first == UInt8(ascii: "/") else { return nil }
    var segments: [String] = []
    for segment in path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
      guard let decoded = percentDecoded(segment) else { return nil }
      segments.append(decoded)
    }
    return segments
  }
}
