import OutboundHTTP

/// The place of a message.
struct MessagePlace: Hashable, Sendable {
  var chatID: String
  var messageID: String

  /// The id of the message's vector, `{chatId}#{messageId}`; nil if the index takes no id that
  /// long.
  ///
  /// A message's id is unique only in its chat, and clients choose both ids. Characters other than
  /// letters, digits and `-._~` are percent-encoded, so that no two places share an id and the
  /// index, which takes only ASCII, takes them all.
  var vectorID: String? {
    let id = Self.vectorIDPrefix(ofChat: chatID) + OutboundURL.encode(messageID)
    return id.utf8.count <= Self.vectorIDBytesMax ? id : nil
  }

  /// The prefix that the ids of all vectors of a chat have, and no others.
  static func vectorIDPrefix(ofChat chatID: String) -> String {
    OutboundURL.encode(chatID) + "#"
  }

  /// The index's own limit.
  private static let vectorIDBytesMax = 512
}
