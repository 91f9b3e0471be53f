import FirestoreClient
public import PsstServices

extension SummarizeChatReply {
  /// Creates the result for a summary.
  public init(_ chatID: String, _ summary: QuickActions.Summary) {
    self.init(
      chatId: chatID,
      summary: summary.text,
      messages: summary.messages,
      cached: summary.isCached,
      model: summary.model,
      degraded: summary.messages > 0 && summary.limitation != nil,
      note: summary.limitation,
      usage: ChatWithAIReply.Usage(summary.usage)
    )
  }
}

extension SuggestReminderReply {
  /// Creates the result for a suggestion, with the id of the action that proposes it.
  public init(_ suggestion: QuickActions.Suggestion, actionID: String?) {
    var reminder: Suggestion?
    if let text = suggestion.text, let due = suggestion.dueDate {
      reminder = Suggestion(
        text: text,
        dueDate: due.microseconds / 1000,
        actionId: actionID
      )
    }
    self.init(
      reminder: reminder,
      cached: suggestion.isCached,
      model: suggestion.model,
      usage: ChatWithAIReply.Usage(suggestion.usage)
    )
  }
}
