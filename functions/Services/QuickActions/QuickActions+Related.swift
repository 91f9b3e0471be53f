import FirestoreClient
import PsstModels

extension QuickActions {
  /// Earlier messages that are close to one, in the chats whose member the caller is now.
  ///
  /// A message without text has none. The message's own vector is used where the index has it, so
  /// that usually no model is asked. Throws `QuickActionError` and `FirestoreError`.
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
