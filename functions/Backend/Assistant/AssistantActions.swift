import FirestoreClient
public import PsstModels
import PsstServices

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The executor of the actions that an assistant takes in its caller's name.
///
/// Each action is executed once and recorded. The record, the check and the effect are written in
/// one transaction. The action's id is derived from its position in the question's turn. When a
/// turn continues because its answer was lost, it therefore finds its earlier actions, even if the
/// model words them differently.
struct AssistantActions: Sendable {
  let firestore: Firestore
  let documents: DocumentReader
  let memory: AssistantMemory

  /// The time in which a proposal can be confirmed, in microseconds.
  static let confirmationTime: Int64 = 600_000_000

  /// The types of the commands that a model may call.
  static let commands: [any AssistantCommand.Type] = [
    ScheduleCall.self, SetReminder.self, SendMessage.self,
  ]

  /// A recorded action with its id.
  struct Recorded: Sendable, Hashable {
    var id: String
    var action: AIAction
    /// True if an earlier attempt to answer the question recorded the action.
    var isEarlier = false
  }

  /// Carries out or proposes a command; a command that is not allowed is recorded as refused.
  ///
  /// An action that the question itself asks for is carried out at once. `ordinal` is the number of
  /// earlier actions of the same tool in the turn. If an earlier attempt recorded an action at this
  /// position, that record is returned, unless it is only a proposal, which is replaced.
  ///
  /// Throws `FirestoreError`, and `AssistantMemory.ClaimLostError` if another attempt has claimed
  /// the question.
  func perform<Command: AssistantCommand>(
    _ command: Command,
    _ ordinal: Int,
    of turn: AssistantMemory.Turn,
    for caller: AssistantCaller,
    question: AssistantQuestion
  ) async throws -> Recorded {
    let parameters = try Self.parameters(of: command)
    let id = ContentHash.of(
      [caller.uid, turn.conversationID, turn.id, Command.name, "\(ordinal)"]
    )
    let expiresAt = Timestamp(microseconds: caller.now.microseconds + Self.confirmationTime)
    let reference = firestore.collection(AIAction.collection).document(id)
    return try await firestore.runTransaction { transaction in
      let stored = try await transaction.get(reference)
      try await memory.check(turn, transaction)
      if stored.exists, let action = try stored.data(as: Lenient<AIAction>.self).value,
        action.status != .proposed
      {
        return Recorded(id: id, action: action, isEarlier: true)
      }
      var action = AIAction(
        trainerId: caller.uid,
        conversationId: turn.conversationID,
        action: Command.name,
        parameters: parameters,
        status: .proposed,
        timestamp: caller.now
      )
      do {
        let reader = reader(transaction, caller)
        try await command.check(caller, reader)
        action.targetName = try await command.targetName(reader)
        if try await command.isAsked(by: question, reader) {
          let written = try command.write(caller, actionID: id, firestore, transaction)
          (action.status, action.result) = (.done, written.path)
        } else {
          action.expiresAt = expiresAt
        }
      } catch let refusal as ActionRefusedError {
        (action.status, action.result) = (.refused, refusal.reason)
      }
      try transaction.set(reference, action)
      try memory.add(id, to: turn, transaction)
      return Recorded(id: id, action: action)
    }
  }

  /// Proposes a command outside of a conversation, and returns the action's record.
  ///
  /// `id` is the same each time the command is proposed. An action that was done stays as it is;
  /// any other is proposed again. Throws `ActionRefusedError` and `FirestoreError`.
  func propose<Command: AssistantCommand>(
    _ command: Command,
    id: String,
    for caller: AssistantCaller
  ) async throws -> Recorded {
    let parameters = try Self.parameters(of: command)
    let reference = firestore.collection(AIAction.collection).document(id)
    return try await firestore.runTransaction { transaction in
      let stored = try await transaction.get(reference)
      if stored.exists, let action = try stored.data(as: Lenient<AIAction>.self).value,
        action.status == .done
      {
        return Recorded(id: id, action: action, isEarlier: true)
      }
      let reader = reader(transaction, caller)
      try await command.check(caller, reader)
      var action = AIAction(
        trainerId: caller.uid,
        conversationId: "",
        action: Command.name,
        parameters: parameters,
        status: .proposed,
        timestamp: caller.now,
        expiresAt: Timestamp(microseconds: caller.now.microseconds + Self.confirmationTime)
      )
      action.targetName = try await command.targetName(reader)
      try transaction.set(reference, action)
      return Recorded(id: id, action: action)
    }
  }

  /// Carries out an action proposed to the caller, or declines it.
  ///
  /// An action that is no longer allowed is recorded as refused, with the reason. Repeating the
  /// same decision changes nothing. If the target's name has changed since the proposal, the action
  /// is not carried out: its record gets the new name, and the caller decides again. Throws
  /// `ConfirmationError` and `FirestoreError`.
  func confirm(
    _ actionID: String,
    accept: Bool,
    by caller: AssistantCaller
  ) async throws -> Recorded {
    guard actionID.isDocumentID else { throw ConfirmationError.unknown }
    let reference = firestore.collection(AIAction.collection).document(actionID)
    let outcome = try await firestore.runTransaction {
      transaction -> Result<Recorded, ConfirmationError> in
      let stored = try await transaction.get(reference)
      guard stored.exists, var action = try stored.data(as: Lenient<AIAction>.self).value,
        action.trainerId == caller.uid, let expiresAt = action.expiresAt
      else { throw ConfirmationError.unknown }
      switch action.status {
      case .proposed: break
      case .done where accept, .refused where !accept, .failed:
        return .success(Recorded(id: actionID, action: action))
      case .done, .refused: throw ConfirmationError.settled(action.status)
      }
      guard caller.now < expiresAt else { throw ConfirmationError.expired }
      action.timestamp = caller.now
      if accept {
        do {
          let command = try Self.command(of: action)
          let reader = reader(transaction, caller)
          try await command.check(caller, reader)
          let targetName = try await command.targetName(reader)
          guard targetName == action.targetName else {
            action.targetName = targetName
            try transaction.set(reference, action)
            return .failure(.targetChanged(targetName ?? ""))
          }
          let written = try command.write(caller, actionID: actionID, firestore, transaction)
          (action.status, action.result) = (.done, written.path)
        } catch let refusal as ActionRefusedError {
          (action.status, action.result) = (.refused, refusal.reason)
        }
      } else {
        (action.status, action.result) = (.refused, "the caller declined it")
      }
      try transaction.set(reference, action)
      return .success(Recorded(id: actionID, action: action))
    }
    return try outcome.get()
  }

  /// Returns the current records of actions, in the order of the ids.
  ///
  /// Deleted actions are left out. Throws `FirestoreError`.
  func recorded(_ ids: [String]) async throws -> [Recorded] {
    let actions = firestore.collection(AIAction.collection)
    let references = ids.filter(\.isDocumentID).map { actions.document($0) }
    return try await firestore.getAll(references).compactMap { snapshot in
      guard snapshot.exists, let action = try snapshot.data(as: Lenient<AIAction>.self).value
      else { return nil }
      return Recorded(id: snapshot.id, action: action, isEarlier: true)
    }
  }

  private func reader(_ transaction: Transaction, _ caller: AssistantCaller) -> ActionReader {
    ActionReader(
      firestore: firestore,
      documents: documents,
      transaction: transaction,
      uid: caller.uid
    )
  }

  // MARK: Parameters

  static func parameters(of command: some AssistantCommand) throws -> [String: String] {
    try JSONDecoder().decode([String: String].self, from: JSONEncoder().encode(command))
  }

  private static func command(of action: AIAction) throws -> any AssistantCommand {
    guard let type = commands.first(where: { $0.name == action.action }) else {
      throw ActionRefusedError("there is no such action any more")
    }
    do {
      return try decode(type, from: action.parameters)
    } catch is DecodingError {
      throw ActionRefusedError("the action has other parameters now")
    }
  }

  private static func decode<Command: AssistantCommand>(
    _ type: Command.Type,
    from parameters: [String: String]
  ) throws -> Command {
    try JSONDecoder().decode(type, from: JSONEncoder().encode(parameters))
  }
}

/// The reason that a proposal cannot be confirmed or declined.
public enum ConfirmationError: Error, Sendable, Hashable {
  /// The caller has no proposal with the given id.
  case unknown
  /// The time to confirm the proposal has passed.
  case expired
  /// The caller decided otherwise before, or the action was no longer allowed.
  case settled(AIAction.Status)
  /// The target now has the given name.
  ///
  /// The person or group was renamed, or the members of the group changed.
  case targetChanged(String)
}
