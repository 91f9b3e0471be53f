/// A stored document.
public struct FirestoreDocument: Sendable, Hashable {
  /// The full resource name.
  public var name: DocumentName
  /// The top-level fields by raw key.
  public var fields: MapValue
  /// The time of the commit that created it; reset when it is deleted and created again.
  public var createTime: Timestamp
  /// The time of the last commit that changed it.
  public var updateTime: Timestamp

  /// A document with its times.
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
