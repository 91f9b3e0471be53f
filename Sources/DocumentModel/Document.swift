/// A stored document.
public struct Document: Sendable, Hashable {
  /// The full resource name.
  public var name: DocumentName
  /// The top-level fields by raw key.
  public var fields: [String: Value]
  /// The commit that created it; reset when it is deleted and created again.
  public var createTime: Timestamp
  /// The last commit that changed it.
  public var updateTime: Timestamp

  /// A document with its times.
  public init(
    name: DocumentName,
    fields: [String: Value],
    createTime: Timestamp,
    updateTime: Timestamp
  ) {
    self.name = name
    self.fields = fields
    self.createTime = createTime
    self.updateTime = updateTime
  }
}
