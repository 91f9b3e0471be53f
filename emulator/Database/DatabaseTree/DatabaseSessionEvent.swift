package import DatabaseModel
import JSONText

/// What a session sends to its client, in the order in which it was applied.
package enum DatabaseSessionEvent: Sendable {
  /// The response to a request of the client.
  case reply(request: UInt64, Result<Reply, DatabaseError>)
  /// The node at a path is now this one.
  case value(DatabasePath, EncodedNode, tag: Int?)
  /// The nodes at these paths below a path are now these.
  case merge(DatabasePath, EncodedMembers, tag: Int?)
  /// The rules no longer allow a listener, which is gone; `query` is nil for the whole node.
  case revoked(DatabasePath, query: DatabaseQuery?, tag: Int?)

  package enum Reply: Sendable {
    case done
    /// A listener was added.
    ///
    /// `missingIndex` is the message for a query without an index, whose client filters the
    /// children itself.
    case listening(missingIndex: String?)
    case node(EncodedNode)
  }
}

/// A node whose JSON is written at most once for all clients that get it.
package final class EncodedNode: Sendable {
  package let node: DatabaseNode
  private let text = LazyBytes()

  package init(_ node: DatabaseNode) {
    self.node = node
  }

  /// The JSON with priorities and without lists.
  package var json: [UInt8] { text.value { node.json(.export) } }
}

/// Nodes by their paths, whose JSON object is written at most once for all clients.
package final class EncodedMembers: Sendable {
  package let members: [(path: DatabasePath, node: DatabaseNode)]
  private let text = LazyBytes()

  package init(_ members: [(path: DatabasePath, node: DatabaseNode)]) {
    self.members = members
  }

  /// The JSON object, whose keys are the paths without a leading slash.
  package var json: [UInt8] {
    text.value {
      var bytes = [UInt8(ascii: "{")]
      for (index, member) in members.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes.appendJSONQuoted(member.path.keys.joined(separator: "/"))
        bytes.append(UInt8(ascii: ":"))
        member.node.appendJSON(.export, to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
      return bytes
    }
  }
}
