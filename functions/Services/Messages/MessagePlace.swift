import OutboundHTTP

/// The place of a message.
///
/// Ids are the same if their bytes are; strings that are only canonically equivalent are different.
struct MessagePlace: Hashable, Sendable {
  var chatID: String
  var messageID: String

  static func == (left: MessagePlace, right: MessagePlace) -> Bool {
    left.chatID.utf8.elementsEqual(right.chatID.utf8)
      && left.messageID.utf8.elementsEqual(right.messageID.utf8)
  }

  func hash(into hasher: inout Hasher) {
    for id in [chatID, messageID] {
      hasher.combine(id.utf8.count)
      for byte in id.utf8 { hasher.combine(byte) }
    }
  }

  /// The id of what is kept of the message elsewhere, `{chatId}#{messageId}`, such as its vector;
  /// nil if the index takes no id that long.
  ///
  /// A message's id is unique only in its chat, and clients choose both ids. Characters other than
  /// letters, digits and `-._~` are percent-encoded, so that no two places share an id and the
  /// index, which takes only ASCII, takes them all.
  var key: String? {
    let id = Self.keyPrefix(ofChat: chatID) + OutboundURL.encode(messageID)
    return id.utf8.count <= Self.keyBytesMax ? id : nil
  }

  /// The prefix that the ids of all messages of a chat have, and no others.
  static func keyPrefix(ofChat chatID: String) -> String {
    OutboundURL.encode(chatID) + "#"
  }

  /// The index's own limit.
  private static let keyBytesMax = 512
}
