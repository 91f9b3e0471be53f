import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
@testable import PsstFunctions
import PsstModels
@testable import PsstBackend
@testable import PsstServices
import Testing

/// What a test throws in place of a caller that leaves.
struct LostReply: Error {}

extension AssistantFixture {
  /// A call of `setReminder` that a model makes.
  func reminder(_ text: String) -> ScriptedReply {
    ScriptedReply(toolCalls: [
      .init(
        "setReminder",
        .object(["text": .string(text), "dueDate": .string(self.text(hours: 24))])
      )
    ])
  }

  func ask(
    _ question: String,
    request: String?,
    in conversation: String? = nil,
    as uid: String = "tina"
  ) async throws -> ChatWithAIReply {
    try await suite.call(
      functions.chatWithAI,
      ChatWithAIRequest(message: question, conversationId: conversation, requestId: request),
      as: .user(uid)
    )
  }

  func question(
    _ text: String,
    _ request: String? = nil,
    in conversation: String? = nil
  ) -> AssistantMemory.Question {
    .init(
      uid: "tina",
      text: text,
      conversationID: conversation,
      requestID: request
    )
  }

  /// The conversations as another worker sees them, whose clock may be ahead.
  func memory(
    ahead: Duration = .zero,
    clock: any Clock<Duration> = WakingClock(wakes: 0)
  ) -> AssistantMemory {
    AssistantMemory(
      firestore: suite.firestore,
      clock: clock,
      now: {
        Timestamp(
          microseconds: suite.clock.now.microseconds + Int64(ahead / .microseconds(1))
        )
      }
    )
  }

  /// The texts of all reminders.
  func reminders() async throws -> [String] {
    try await suite.firestore.collection("reminders").get().data(as: Reminder.self).map(\.text)
  }

  /// Asks a question whose caller leaves when a tool has ended.
  func lose(_ question: String, request: String) async throws {
    await #expect(throws: LostReply.self) {
      try await functions.services.assistant.answer(
        .init(uid: "tina", text: question, requestID: request)
      ) { event in
        if case .toolEnds = event { throw LostReply() }
      }
    }
  }

  /// What was said in a conversation of Tina's.
  func stored(_ conversation: String) async throws -> QuerySnapshot {
    try await suite.firestore.collection("users/tina/ai_conversations/\(conversation)/messages")
      .get()
  }
}
