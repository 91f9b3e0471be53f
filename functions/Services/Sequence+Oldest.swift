public import FirestoreClient

extension Sequence<DocumentSnapshot> {
  /// The document that was created first; of several at one moment, the one with the lowest id.
  public var oldest: DocumentSnapshot? {
    self.min { left, right in
      (left.createTime ?? left.readTime, left.id) < (right.createTime ?? right.readTime, right.id)
    }
  }
}
