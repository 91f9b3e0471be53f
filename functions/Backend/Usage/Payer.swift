import PsstModels

/// The user or app to whom the ledger charges a call of a model.
public struct Payer: Sendable, Hashable {
  /// The user's id; nil for the app.
  let uid: String?

  /// The app, for example for an administrator's work.
  public static let app = Payer(uid: nil)

  /// Returns the given user as a payer, or the app if the id is not valid for a user.
  ///
  /// Ids of senders come from documents, which may contain anything. This does not let users escape
  /// a limit, because clients write messages only under their own id.
  public static func user(_ uid: String) -> Payer {
    uid.isUserID && uid.unicodeScalars.count <= 128 && uid != appID ? Payer(uid: uid) : .app
  }

  /// The id under which the ledger keeps the sum of all payers.
  static let appID = "_app"
}
