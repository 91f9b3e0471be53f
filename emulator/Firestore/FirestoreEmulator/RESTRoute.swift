import DocumentModel
import HTTPSupport
import HTTPTypes

/// What a REST request's method and path ask for.
enum RESTRoute: Hashable {
  case liveness
  case reset(DatabaseName)
  case export(project: String)
  /// The security rules of a project, or of one of its databases, as text.
  case readRules(RulesPolicy.Scope)
  case loadRules(RulesPolicy.Scope)
  /// What the rules of a project have been asked so far.
  case coverage(project: String, isPage: Bool)
  /// The requests of a stream's WebChannel.
  case channel(ChannelMethod)
  /// The name is as the path spells it, unchecked.
  case getDocument(name: String)
  case updateDocument(name: String)
  case deleteDocument(name: String)
  case listDocuments(parent: String, collectionID: String)
  case createDocument(parent: String, collectionID: String)
  /// A verb of a whole database.
  case database(DatabaseVerb, name: String)
  /// A verb below a document or the root.
  case parent(ParentVerb, name: String)

  /// The streams in both directions, which web pages have as WebChannels.
  enum ChannelMethod: String, Hashable {
    case listen = "Listen"
    case write = "Write"
  }

  /// Verbs that follow `documents` only.
  enum DatabaseVerb: String, Hashable {
    case batchGet, beginTransaction, commit, rollback, batchWrite, executePipeline
  }

  /// Verbs that follow `documents` or a document.
  enum ParentVerb: String, Hashable {
    case runQuery, runAggregationQuery, partitionQuery, listCollectionIds
  }

  /// Whether the answer, and an error, is an array.
  var isStreamed: Bool {
    switch self {
    case .database(.batchGet, _), .database(.executePipeline, _), .parent(.runQuery, _),
      .parent(.runAggregationQuery, _):
      true
    default: false
    }
  }

  /// Whether the request is carried out although its client has left before the response.
  ///
  /// A program that writes and exits at once expects its write to be made.
  var outlivesClient: Bool {
    switch self {
    case .updateDocument, .deleteDocument, .createDocument, .database(.commit, _),
      .database(.batchWrite, _), .database(.rollback, _), .reset, .loadRules:
      true
    default: false
    }
  }

  /// The route for a method and a percent-encoded path; nil when there is none.
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

    // An encoded colon belongs to an id, so the verb is looked for in what was sent.
    if method == .post, let colon = path.lastIndex(of: ":") {
      let verb = String(path[path.index(after: colon)...])
      if let rest = Self.decoded(String(path[..<colon])), rest.count >= 6, rest[5] == "documents" {
        if let verb = DatabaseVerb(rawValue: verb), rest.count == 6 {
          self = .database(verb, name: rest[1..<5].joined(separator: "/"))
          return
        }
        // A collection of the root with a verb is production's collection of that long name.
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

  /// Whether a path is that of a WebChannel, with the same words as gRPC's methods have.
  static func isChannel(_ path: String) -> Bool {
    path.hasPrefix("/google.firestore.v1.Firestore/") && path.hasSuffix("/channel")
  }

  private static let exportSuffix = ":export"

  /// The route for the rules of a project or a database, by the segments from `emulator` on.
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

  /// The route for a path from `projects` on, with segments after `documents`.
  private init?(method: HTTPRequest.Method, documentPath segments: [String]) {
    let name = segments.joined(separator: "/")
    let parent = segments.dropLast().joined(separator: "/")
    let id = segments[segments.count - 1]
    switch method {
    // A name that ends in a slash is a document's, and refused as such.
    case .get where segments.count.isMultiple(of: 2) && !id.isEmpty:
      self = .listDocuments(parent: parent, collectionID: id)
    case .get: self = .getDocument(name: name)
    case .post: self = .createDocument(parent: parent, collectionID: id)
    case .patch: self = .updateDocument(name: name)
    case .delete: self = .deleteDocument(name: name)
    default: return nil
    }
  }

  /// The segments after the first slash, each decoded; nil when an escape is malformed.
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
