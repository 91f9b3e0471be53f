import DatabaseModel
import StorageEngine

extension TreeView.Effect {
  /// Adds the rows of the change to a batch.
  func append(to batch: inout StorageBatch, instance: String) {
    switch self {
    case .replace(let path, let node):
      let key = NodeRows.key(instance: instance, path)
      batch.deleteRange(NodeRows.keyspace, from: key, to: keyAfter(prefix: key))
      Self.append(node, key, to: &batch)
    case .setPriority(let path, let priority):
      let key = NodeRows.key(instance: instance, path)
      if priority == nil {
        batch.delete(NodeRows.keyspace, key)
      } else {
        batch.put(NodeRows.keyspace, key, NodeRows.encode(NodeRows.Row(priority: priority)))
      }
    }
  }

  private static func append(_ node: DatabaseNode, _ key: [UInt8], to batch: inout StorageBatch) {
    if node.leaf != nil || node.priority != nil {
      let row = NodeRows.Row(leaf: node.leaf, priority: node.priority)
      batch.put(NodeRows.keyspace, key, NodeRows.encode(row))
    }
    for child in node.children {
      var childKey = key
      NodeRows.append(child.key, to: &childKey)
      append(child.node, childKey, to: &batch)
    }
  }
}
