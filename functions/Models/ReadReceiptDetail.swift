/// One member of a chat who has, or has not, read a message.
public struct ReadReceiptDetail: Sendable, Hashable, Identifiable {
  /// The uid of the member.
  public var id: String
  /// The name of the member; empty if unknown.
  public var displayName: String
  /// The address of the member's picture.
  public var photoURL: String?
  /// True if the member has read the message.
  public var hasRead: Bool

  /// Creates the detail of one member.
  public init(id: String, displayName: String, photoURL: String? = nil, hasRead: Bool) {
    self.id = id
    self.displayName = displayName
    self.photoURL = photoURL
    self.hasRead = hasRead
  }
}
