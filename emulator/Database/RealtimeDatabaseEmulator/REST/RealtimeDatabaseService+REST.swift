import DatabaseModel
import DatabaseTree
import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import NIOCore

/// The reads and writes of the REST API.
extension RealtimeDatabaseService {
  /// The maximum size of a body, which is production's.
  private static let bodyBytesMax = 256 << 20

  func respond(
    to call: RESTCall,
    _ request: Request,
    _ instance: DatabaseInstance,
    as caller: DatabaseCaller
  ) async throws -> Response {
    switch call.method {
    case .get, .head: try await withTimeout(call) { try await read(call, instance, as: caller) }
    case .put, .patch, .post, .delete: try await write(call, request, instance, as: caller)
    default:
      Self.error("The method \(call.method.rawValue) is not supported", status: .methodNotAllowed)
    }
  }

  // MARK: - Reading

  private func read(
    _ call: RESTCall,
    _ instance: DatabaseInstance,
    as caller: DatabaseCaller
  ) async throws -> Response {
    if call.isShallow, !call.location.isPriority {
      return call.response(try await shallow(call, instance, as: caller))
    }
    let node = try await read(call.location, call.query, instance, as: caller)
    let tag = EntityTag.of(node)
    if call.ifNoneMatch == tag { return Response(status: .notModified, headers: [.eTag: tag]) }
    return call.response(node.json(call.format), tag: call.wantsEntityTag ? tag : nil)
  }

  private func read(
    _ location: DatabaseLocation,
    _ query: DatabaseQuery?,
    _ instance: DatabaseInstance,
    as caller: DatabaseCaller
  ) async throws -> DatabaseNode {
    let node = try await instance.read(location.path, query: query, as: caller)
    return location.isPriority ? node.priority.map { DatabaseNode($0) } ?? .empty : node
  }

  private func shallow(
    _ call: RESTCall,
    _ instance: DatabaseInstance,
    as caller: DatabaseCaller
  ) async throws -> [UInt8] {
    let node = try await instance.readShallow(
      call.path,
      startAfter: call.shallowStart,
      limit: call.shallowLimit,
      as: caller
    )
    switch node {
    case .leaf(let leaf): return (leaf.map { DatabaseNode($0) } ?? .empty).json(.plain)
    case .keys(let keys):
      let children = keys.map { ($0, DatabaseNode(.boolean(true))) }
      return DatabaseNode(DatabaseChildren(children)).json(.objects)
    }
  }

  /// Runs a read, or throws once its time is over.
  private func withTimeout(
    _ call: RESTCall,
    _ read: @escaping @Sendable () async throws -> Response
  ) async throws -> Response {
    guard let timeout = call.timeout else { return try await read() }
    return try await withThrowingTaskGroup(of: Response.self) { [clock] group in
      group.addTask { try await read() }
      group.addTask {
        try await clock.sleep(for: timeout)
        throw DatabaseError.invalid("The request timed out")
      }
      defer { group.cancelAll() }
      guard let response = try await group.next() else { throw CancellationError() }
      return response
    }
  }

  // MARK: - Writing

  private func write(
    _ call: RESTCall,
    _ request: Request,
    _ instance: DatabaseInstance,
    as caller: DatabaseCaller
  ) async throws -> Response {
    var text = Array("null".utf8)
    if call.method != .delete {
      text = Array(buffer: try await request.wholeBody(upTo: Self.bodyBytesMax))
    }
    guard !text.isEmpty else { throw DatabaseError.invalid("Error: No data supplied.") }
    switch call.method {
    case .patch: return try await merge(text, call, instance, as: caller)
    case .post:
      let key = keys.next(atMilliseconds: now)
      guard !call.location.isPriority else { throw DatabaseError.invalidPath }
      let place = try DatabaseLocation(keys: call.path.keys + [key])
      let tag = try await set(text, place, call, instance, as: caller).map(EntityTag.of)
      return call.response(Array(#"{"name":"\#(key)"}"#.utf8), tag: tag)
    default:
      do {
        let node = try await set(text, call.location, call, instance, as: caller)
        let json = call.method == .delete ? Array("null".utf8) : node?.json(call.format)
        return call.response(json ?? [], tag: call.wantsEntityTag ? node.map(EntityTag.of) : nil)
      } catch is MismatchError {
        return try await mismatch(call, instance, as: caller)
      }
    }
  }

  /// Writes a value and returns it as it is afterwards, unless nobody wants to know.
  private func set(
    _ text: [UInt8],
    _ location: DatabaseLocation,
    _ call: RESTCall,
    _ instance: DatabaseInstance,
    as caller: DatabaseCaller
  ) async throws -> DatabaseNode? {
    var write = try DatabaseWrite(parsing: text, at: location)
    write.disablesTriggers = call.disablesTriggers
    let wantsNode = call.wantsEntityTag || call.method == .put && call.print != .silent
    var check: (@Sendable (DatabaseNode) throws -> Void)?
    if let expected = call.ifMatch {
      check = { node in
        if EntityTag.of(location.value(of: node)) != expected { throw MismatchError() }
      }
    }
    let node = try await instance.write(
      write,
      as: caller,
      returnsNode: wantsNode,
      check: check
    )
    return wantsNode ? location.value(of: node) : nil
  }

  /// The error of a write whose `if-match` is not the tag of the value.
  private struct MismatchError: Error {}

  private func mismatch(
    _ call: RESTCall,
    _ instance: DatabaseInstance,
    as caller: DatabaseCaller
  ) async throws -> Response {
    // The value may have changed again, but the client only has to see one with its tag.
    let node = try await read(call.location, nil, instance, as: caller)
    var response = call.response(node.json(call.format), tag: EntityTag.of(node), isSilent: false)
    response.head.status = .preconditionFailed
    return response
  }

  private func merge(
    _ text: [UInt8],
    _ call: RESTCall,
    _ instance: DatabaseInstance,
    as caller: DatabaseCaller
  ) async throws -> Response {
    guard !call.location.isPriority else { throw DatabaseError.invalidPath }
    // Whatever the text is instead, the answer is the same.
    guard let members = (try? JSONTree.parse(text))?.members else {
      throw DatabaseDataError.notAnObject
    }
    var write = try DatabaseWrite(merging: members, below: call.path, in: text)
    write.disablesTriggers = call.disablesTriggers
    let hasServerValues = write.hasServerValues
    let node = try await instance.write(
      write,
      as: caller,
      returnsNode: call.wantsEntityTag || hasServerValues
    )
    return call.response(
      write.echo(after: hasServerValues ? node : nil),
      tag: call.wantsEntityTag ? EntityTag.of(node) : nil
    )
  }
}

extension DatabaseLocation {
  /// Returns the value at the place, of the node at its path.
  fileprivate func value(of node: DatabaseNode) -> DatabaseNode {
    isPriority ? node.priority.map { DatabaseNode($0) } ?? .empty : node
  }
}

extension DatabaseWrite {
  /// Creates the write of a value; errors name their place in the text.
  fileprivate init(
    parsing text: [UInt8],
    at location: DatabaseLocation
  ) throws(DatabaseDataError) {
    let tree: JSONTree
    do {
      tree = try JSONTree.parse(text)
    } catch {
      throw DatabaseDataError.notJSON
    }
    do {
      try self.init(tree, at: location)
    } catch {
      throw error.placed(in: text)
    }
  }

  fileprivate init(
    merging members: [(String, JSONTree)],
    below path: DatabasePath,
    in text: [UInt8]
  ) throws(DatabaseDataError) {
    do {
      try self.init(merging: members, below: path)
    } catch {
      throw error.placed(in: text)
    }
  }

  private var members: [Member] {
    if case .merge(_, let members) = operation { members } else { [] }
  }

  fileprivate var hasServerValues: Bool { members.contains { !$0.value.serverValues.isEmpty } }

  /// Returns the JSON object of the written values; server values are those of `node`.
  fileprivate func echo(after node: DatabaseNode?) -> [UInt8] {
    var object = JSONObjectText()
    for member in members {
      let place = DatabaseLocation(path: member.path, isPriority: member.isPriority)
      let value = node.map { place.value(of: $0.node(at: member.path)) } ?? member.value.node
      let keys = member.path.keys + (member.isPriority ? [".priority"] : [])
      object.set(keys.joined(separator: "/"), json: value.json(.plain))
    }
    return object.bytes
  }
}

extension RESTCall {
  /// Returns a response with a value in the form that the client asked for.
  fileprivate func response(_ json: [UInt8], tag: String? = nil, isSilent: Bool? = nil) -> Response
  {
    var response: Response
    if isSilent ?? (print == .silent) {
      response = Response(status: .noContent)
    } else {
      let text = print == .pretty ? JSONLayout.pretty(json) : json
      if let callback {
        response = Response(
          status: .ok,
          headers: [.contentType: "application/javascript; charset=utf-8"],
          body: .whole(ByteBuffer(bytes: Array("\(callback)(".utf8) + text + Array(");".utf8)))
        )
      } else {
        response = .json(ByteBuffer(bytes: text))
      }
      response.headers[.cacheControl] = "no-cache"
    }
    if let fileName {
      response.headers[.contentDisposition] = "attachment; filename=\"\(fileName)\""
    }
    if let tag { response.headers[.eTag] = tag }
    return response
  }
}
