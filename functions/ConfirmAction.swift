public import FunctionsRuntime
import PsstModels
import PsstBackend
public import PsstServices

extension AppFunctions {
  /// Carries out an action that the assistant proposed to the caller, or declines it.
  ///
  /// A proposal is carried out at most once.
  public var confirmAction: OnCall<ConfirmActionRequest, ChatWithAIReply.Action> {
    .init("confirmAction", callers: .users) { request in
      let uid = try request.requireUser()
      try await countCall(.assistant, of: uid)
      let action = try await answering(request.logger) {
        try await services.assistant.confirm(
          request.data.actionId,
          accept: request.data.accept,
          by: uid
        )
      }
      request.logger.info(
        "Action settled",
        metadata: [
          "action.id": "\(action.id)", "action.status": "\(action.record.status.rawValue)",
        ]
      )
      return ChatWithAIReply.Action(id: action.id, action.record)
    }
  }
}
