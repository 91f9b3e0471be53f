import PsstModels

/// The one to whom the ledger charges a call of a model.
public struct Payer: Sendable, Hashable {
  /// The user's id; nil for the app.
  let uid: String?

  /// The app alone, as for an administrator's work.
  public static let app = Payer(uid: nil)

  /// The user who wrote the message or asked; the app where no user can have this id.
  ///
  /// Ids of senders come from documents, which may hold anything. Nobody escapes a limit by that,
  /// because clients write messages only under their own id.
  public static func user(_ uid: String) -> Payer {
    uid.isUserID && uid.unicodeScalars.count <= 128 && uid != appID ? Payer(uid: uid) : .app
  }

  /// The id under which the ledger keeps the sum of all payers.
  static let appID = "_app"
}
