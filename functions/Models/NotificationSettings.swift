/// The kinds of notifications that a user has switched on or off.
///
/// A kind that is missing is on.
public struct NotificationSettings: Codable, Sendable, Hashable {
  /// The switches by the names of their kinds.
  public var switches: [String: Bool]

  /// Creates settings in which everything is on, unless switched off.
  public init(_ switches: [String: Bool] = [:]) {
    self.switches = switches
  }

  /// True if the user wants a notification for each new message.
  public var messages: Bool {
    get { switches[Self.messagesKey] ?? true }
    set { switches[Self.messagesKey] = newValue }
  }

  private static let messagesKey = "messages"

  /// Decodes a map of switches.
  public init(from decoder: any Decoder) throws {
    switches = try decoder.singleValueContainer().decode([String: Bool].self)
  }

  /// Encodes the switches as a map.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(switches)
  }
}
