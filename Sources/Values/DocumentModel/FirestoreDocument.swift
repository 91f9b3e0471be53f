/// A stored document with its name, fields and times.
public struct FirestoreDocument: Sendable, Hashable {
  /// The full resource name.
  public var name: DocumentName
  /// The top-level fields by raw key.
  public var fields: MapValue
  /// The time of the commit that created the document.
  ///
  /// Deleting the document and creating it again resets the time.
  public var createTime: Timestamp
  /// The time of the last commit that changed the document.
  public var updateTime: Timestamp

  /// Creates a document from its parts.
  public init(
    name: DocumentName,
    fields: MapValue,
    createTime: Timestamp,
    updateTime: Timestamp
  ) {
    self.name = name
    self.fields = fields
    self.createTime = createTime
    self.updateTime = updateTime
  }
}
