public import DatabaseClient
public import FirestoreClient
public import Foundation
public import OutboundHTTP

/// The services of one signed-in user, as an app uses them.
///
/// ```swift
/// let session = try await authentication.signIn(email: email, password: password)
/// let services = try AppServices(
///   authentication, firestore: firestore, functions: functionsURL, http: http)
/// Task { await services.messages.run() }
/// for try await chats in services.chats.observeChats() { show(chats) }
/// ```
///
/// Everything is done as the user: the access rules decide, and tokens are renewed as needed. After
/// a sign-out the services throw `notAuthenticated`; create new ones for the next user.
public struct AppServices: Sendable {
  /// The time after which a person no longer waits for a call, so that it ends as `offline`.
  ///
  /// Give it to `FirestoreSettings`, too. Observations have no limit, and calls that ask a model
  /// have a longer one.
  public static let timeout: Duration = .seconds(10)

  /// The uid of the signed-in user.
  public let uid: String
  /// The users of the app.
  public let users: UserService
  /// The clients and prospects of a trainer.
  public let contacts: ContactService
  /// The user's chats.
  public let chats: ChatService
  /// The messages of the chats, and those that wait for their delivery.
  public let messages: MessageService
  /// The assistant and the search.
  public let assistant: AIService
  /// The user's preferences for the assistant.
  public let preferences: PreferencesService
  /// The reminders of a trainer.
  public let reminders: ReminderService
  /// The profiles that a trainer has of clients.
  public let profiles: ProfileService
  /// The calendar of a trainer.
  public let calendar: CalendarService
  /// The settings for push notifications.
  public let notifications: NotificationService
  /// Who is online; nil without a Realtime Database.
  public let presence: PresenceService?
  /// Who types in a chat; nil without a Realtime Database.
  public let typing: TypingIndicatorService?

  /// Creates the services of the user who is signed in.
  ///
  /// `functions` is the URL below which the callables are, see `CallableClient`. With a
  /// `queueFolder`, messages that wait for their delivery survive the end of the app. Throws
  /// `AuthenticationError.notAuthenticated` if nobody is signed in.
  public init(
    _ authentication: AuthenticationService,
    firestore: Firestore,
    functions: String,
    http: any HTTPTransport,
    queueFolder: URL? = nil,
    database: Database? = nil
  ) throws {
    guard let uid = authentication.currentUser?.uid else {
      throw AuthenticationError.notAuthenticated
    }
    self.init(
      uid: uid,
      tokens: try authentication.tokens(),
      firestore: firestore,
      functions: functions,
      http: http,
      queueFolder: queueFolder,
      database: database
    )
  }

  /// Creates the services of a user whose tokens come from another source.
  public init(
    uid: String,
    tokens: any IDTokenSource,
    firestore: Firestore,
    functions: String,
    http: any HTTPTransport,
    queueFolder: URL? = nil,
    database: Database? = nil
  ) {
    self.uid = uid
    let firestore = firestore.acting(as: tokens)
    let callables = CallableClient(origin: functions, http: http, tokens: tokens)
    let documents = DocumentReader()
    let store: any MessageQueueStore =
      queueFolder.map { FileMessageQueueStore(folder: $0, uid: uid) } ?? MemoryMessageQueueStore()
    users = UserService(firestore: firestore, uid: uid, documents: documents)
    contacts = ContactService(
      firestore: firestore,
      uid: uid,
      users: users,
      functions: callables,
      documents: documents
    )
    chats = ChatService(
      firestore: firestore,
      uid: uid,
      users: users,
      functions: callables,
      documents: documents
    )
    messages = MessageService(
      firestore: firestore,
      uid: uid,
      users: users,
      store: store,
      documents: documents
    )
    assistant = AIService(firestore: firestore, uid: uid, functions: callables)
    preferences = PreferencesService(firestore: firestore, uid: uid, documents: documents)
    reminders = ReminderService(firestore: firestore, uid: uid, documents: documents)
    profiles = ProfileService(firestore: firestore, uid: uid, documents: documents)
    calendar = CalendarService(firestore: firestore, uid: uid, documents: documents)
    notifications = NotificationService(firestore: firestore, uid: uid, documents: documents)
    let database = database?.acting(as: tokens)
    presence = database.map { PresenceService(database: $0, uid: uid) }
    typing = database.map { TypingIndicatorService(database: $0, uid: uid) }
  }
}
