import FirestoreClient
import PsstModels

extension QuickActions {
  /// Finds earlier messages that are similar to a message, in the chats of the caller.
  ///
  /// Only chats of which the caller is a member now are searched. A message without text has no
  /// similar messages. If the index has the message's own vector, no model is asked, which is the
  /// usual case. Throws `QuickActionError` and `FirestoreError`.
  public func related(
    to messageID: String,
    in chatID: String,
    for uid: String,
    limit: Int
  ) async throws -> MessageSearch.Found {
    let (reference, _) = try await chat(chatID, of: uid)
    let message = try await message(messageID, in: reference)
    guard message.text.contains(where: { !$0.isWhitespace }) else {
      return MessageSearch.Found(hits: [], model: search.model)
    }
    return try await search.search(
      before: message,
      at: MessagePlace(chatID: chatID, messageID: messageID),
      as: uid,
      limit: limit
    )
  }
}
