import OutboundHTTP

/// The location of a message.
///
/// Ids are compared by their bytes. Strings that are only canonically equivalent are different.
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

  /// The id of data about the message elsewhere, such as its vector: `{chatId}#{messageId}`.
  ///
  /// It is nil if it would be longer than the index allows. A message's id is unique only in its
  /// chat, and clients choose both ids. All characters except letters, digits and `-._~` are
  /// percent-encoded, because the index accepts only ASCII, and so that different messages have
  /// different keys.
  var key: String? {
    let id = Self.keyPrefix(ofChat: chatID) + OutboundURL.encode(messageID)
    return id.utf8.count <= Self.keyBytesMax ? id : nil
  }

  /// Returns the prefix that is common to the keys of a chat's messages and to no others.
  static func keyPrefix(ofChat chatID: String) -> String {
    OutboundURL.encode(chatID) + "#"
  }

  /// The limit of the index.
  private static let keyBytesMax = 512
}
