import FirestoreClient
import FirestoreProtos
import Identity
import OutboundHTTP
import PsstModels
import PsstServices
import SwiftProtobuf
import Synchronization

/// A call of Psst's contacts whose duration Psst's documents limit.
enum ContactRequest: CaseIterable, Sendable {
  /// Lists all contacts, the newest first.
  case list
  /// Finds a user by email address.
  case lookUp
  /// Checks that a user is a contact.
  case check
  /// Searches the contacts for a name.
  case search

  var title: String {
    switch self {
    case .list: "contact list"
    case .lookUp: "user by address"
    case .check: "relationship check"
    case .search: "contact search"
    }
  }

  /// The limit of Psst's documents.
  var millisecondsMax: Double {
    switch self {
    case .list: 500
    case .lookUp: 200
    case .check, .search: 100
    }
  }
}

/// The contacts of a trainer, used through Psst's services as the app uses them.
///
/// The services act as the trainer, so that the security rules decide on their requests. Each
/// request is also sent directly with an administrator's token, to whom no rules apply; its
/// response is not decoded.
struct ContactsLoad: Sendable {
  private let services: AppServices
  private let recorder: RequestRecorder
  private let http: OutboundClient

  /// The durations of calls and of the same requests sent directly; nil if there were none.
  struct Times: Sendable {
    var calls: Measurement
    var direct: Measurement?
  }

  private static let warmUp = 20
  private static let measured = 200
  private static let indexTimeMax = Duration.seconds(60)
  /// The pause between repetitions, which slow down the building of the index.
  private static let indexPause = Duration.milliseconds(200)
  /// The ids that the list should have.
  private static let newestFirst = (0..<People.contacts).reversed().map {
    People.uid(People.user(ofContact: $0))
  }

  /// Creates the services of the trainer; the server must have loaded Psst's rules.
  init(_ server: Hearth.Running) throws {
    http = OutboundClient()
    recorder = RequestRecorder(http: http)
    services = AppServices(
      uid: People.trainer,
      tokens: FixedToken(
        token: try UnsignedTokenIssuer.issue(uid: People.trainer, project: server.project)
      ),
      firestore: Firestore(
        FirestoreSettings(project: server.project, endpoint: "http://\(server.firestore)"),
        http: recorder
      ),
      functions: "http://\(server.functions)",
      http: http
    )
  }

  // MARK: Measurements

  /// Looks up a user while there is no index of addresses; returns the milliseconds.
  ///
  /// Then repeats its request until the server has built the index.
  func firstLookUp() async throws -> Double {
    let began = ContinuousClock.now
    _ = try await find(.lookUp, Self.warmUp + Self.measured)
    let time = ContinuousClock.now - began
    guard let request = recorder.takeRequests().last else {
      throw BenchmarkError("The look-up of a user made no request.")
    }
    try await poll(within: Self.indexTimeMax, every: Self.indexPause, "an index of addresses") {
      try await candidates(of: request) < People.contacts
    }
    return time / .milliseconds(1)
  }

  /// Makes calls one after another, then sends the requests of each call, if any, directly.
  ///
  /// Throws if a call has a wrong result.
  func measure(_ request: ContactRequest) async throws -> Times {
    var calls: [Int64] = []
    var sent: [[OutboundRequest]] = []
    for number in 0..<Self.warmUp + Self.measured {
      try Task.checkCancellation()
      let began = ContinuousClock.now
      let found = try await find(request, number)
      let time = ContinuousClock.now - began
      guard isCorrect(found, request, number) else {
        throw BenchmarkError("The \(request.title) found \(found.count) users, or the wrong ones.")
      }
      sent.append(recorder.takeRequests().map(Self.asAdministrator))
      calls.append(Int64(time / .nanoseconds(1)))
    }
    // Searches that follow one another read the contacts once.
    guard sent.dropFirst(Self.warmUp).contains(where: { !$0.isEmpty }) else {
      return Times(calls: Self.measurement(calls), direct: nil)
    }
    var direct: [Int64] = []
    for requests in sent {
      try Task.checkCancellation()
      let began = ContinuousClock.now
      try await send(requests)
      let time = ContinuousClock.now - began
      direct.append(Int64(time / .nanoseconds(1)))
    }
    return Times(calls: Self.measurement(calls), direct: Self.measurement(direct))
  }

  private static func measurement(_ nanoseconds: [Int64]) -> Measurement {
    Measurement(nanoseconds: Array(nanoseconds.dropFirst(warmUp)), duration: .seconds(1))
  }

  // MARK: Calls of the services

  /// Makes a call and returns the ids of the users that it found.
  private func find(_ request: ContactRequest, _ number: Int) async throws -> [String] {
    switch request {
    case .list: return try await services.contacts.getClients().map { $0.id }
    case .lookUp:
      // Keyboards capitalize the first letter. The service then asks for both spellings.
      let email = People.email(Self.user(number))
      let typed = "\(email.prefix(1).uppercased())\(email.dropFirst())"
      return try await services.users.getUserByEmail(typed).map { [$0.id] } ?? []
    case .check:
      let uid = People.uid(Self.contact(number))
      let isContact = try await services.contacts.validateRelationship(
        trainerId: People.trainer,
        clientId: uid
      )
      return isContact ? [uid] : []
    case .search:
      let query = People.givenName(Self.contact(number)).lowercased()
      return try await services.contacts.searchContacts(query: query).map { $0.id }
    }
  }

  private func isCorrect(_ found: [String], _ request: ContactRequest, _ number: Int) -> Bool {
    switch request {
    case .list: found == Self.newestFirst
    case .lookUp: found == [People.uid(Self.user(number))]
    case .check: found == [People.uid(Self.contact(number))]
    case .search:
      found.count < People.contacts && found.contains(People.uid(Self.contact(number)))
    }
  }

  /// Returns a different user for each call; the factor is coprime to the number of users.
  private static func user(_ number: Int) -> Int { number * 7919 % People.users }

  /// Returns the user of a different contact for each call.
  private static func contact(_ number: Int) -> Int {
    People.user(ofContact: number * 7 % People.contacts)
  }

  // MARK: Direct requests

  /// Sends the requests of one call, all at the same time.
  private func send(_ requests: [OutboundRequest]) async throws {
    try await withThrowingTaskGroup(of: OutboundResponse.self) { group in
      for request in requests {
        group.addTask { [http] in try await http.send(request) }
      }
      for try await response in group where !response.isSuccess {
        throw BenchmarkError("HTTP status \(response.status): \(response.text)")
      }
    }
  }

  /// Returns the number of documents or index entries that the server reads for a query.
  private func candidates(of request: OutboundRequest) async throws -> Int {
    var request = Self.asAdministrator(request)
    var query = try Google_Firestore_V1_RunQueryRequest(
      jsonUTF8Bytes: request.body,
      options: JSONDecodingOptions()
    )
    query.explainOptions.analyze = true
    request.body = try query.jsonUTF8Bytes()
    let response = try await http.send(request)
    guard response.isSuccess else {
      throw BenchmarkError("HTTP status \(response.status): \(response.text)")
    }
    let replies = try Google_Firestore_V1_RunQueryResponse.array(
      fromJSONUTF8Bytes: response.body,
      options: JSONDecodingOptions()
    )
    let statistics = replies.last?.explainMetrics.executionStats.debugStats.fields
    guard let text = statistics?["index_entries_scanned"]?.stringValue, let count = Int(text) else {
      throw BenchmarkError("The server did not explain a look-up: \(response.text)")
    }
    return count
  }

  private static func asAdministrator(_ request: OutboundRequest) -> OutboundRequest {
    var request = request
    request.headers["Authorization"] = "Bearer owner"
    return request
  }
}

/// The token of a user for a whole run; the emulator does not check its expiry.
private struct FixedToken: IDTokenSource {
  var token: String

  func idToken(replacing rejected: String?) -> String { token }
}

/// A transport that keeps the requests that it has sent, so that they can be sent again.
private final class RequestRecorder: HTTPTransport {
  private let http: OutboundClient
  private let requests = Mutex<[OutboundRequest]>([])

  init(http: OutboundClient) { self.http = http }

  func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    requests.withLock { $0.append(request) }
    return try await http.send(request)
  }

  /// Returns the requests since the last time.
  func takeRequests() -> [OutboundRequest] {
    requests.withLock { requests in
      defer { requests = [] }
      return requests
    }
  }
}
