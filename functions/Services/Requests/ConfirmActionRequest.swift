/// The request of `confirmAction`.
public struct ConfirmActionRequest: Codable, Sendable, Hashable {
  /// The id of the proposed action.
  public var actionId: String
  /// True to carry the action out, false to decline it.
  public var accept: Bool

  /// Creates a request that accepts or declines a proposal.
  public init(actionId: String, accept: Bool) {
    self.actionId = actionId
    self.accept = accept
  }
}
