import DatabaseTree
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identifiers
import NIOCore

/// Long polling: scripts that a page requests, which call its functions with messages.
extension RealtimeDatabaseService {
  /// The time that a request is held open; clients give up after 30 s.
  private static let pollTimeMax = Duration.seconds(25)

  func poll(_ request: Request, _ instance: DatabaseInstance) async -> Response {
    let parameters = request.query
    guard request.method == .get else {
      return Self.error("Use GET", status: .methodNotAllowed)
    }
    if parameters["start"] == "t" {
      return start(parameters, instance, host: request.head.authority ?? "")
    }
    guard let session = polls.session(parameters) else {
      return Self.script("pLPCommand('close');")
    }
    if parameters["disconn"] == "t" {
      session.disconnect()
      return Self.script("")
    }
    if parameters["dframe"] == "t" { return .html(Self.page(of: session)) }
    guard session.take(parameters) else {
      return Self.error("Invalid segment", status: .badRequest)
    }
    return Self.script(await session.poll(for: Self.pollTimeMax, clock))
  }

  private func start(
    _ parameters: QueryParameters,
    _ instance: DatabaseInstance,
    host: String
  ) -> Response {
    let callback = parameters["cb"] ?? ""
    guard callback.utf8.count <= 20, callback.allSatisfy({ $0.isASCII && $0.isNumber }) else {
      return Self.error("cb must be a number", status: .badRequest)
    }
    let (polls, clients) = (polls, clients)
    let poll = LongPollSession(
      id: RandomID.make(length: 20),
      password: RandomID.make(length: 20),
      instanceName: instance.name
    ) { poll in
      polls.remove(poll)
      clients.leave(poll)
    }
    guard polls.add(poll) else {
      return Self.error("Too many sessions", status: .serviceUnavailable)
    }
    clients.enter(poll)
    poll.start(session(instance, outlet: poll))
    poll.send(.hello(atMilliseconds: now, host: host, session: poll.id))
    return Self.script(
      Self.function("pLPCommand", "c,a1,a2,a3,a4", callback)
        + Self.function("pRTLPCB", "pN,data", callback)
        + "pLPCommand('start','\(poll.id)','\(poll.password)');\n\(poll.answer())\n"
    )
  }

  /// Returns a function in the page's frame that calls the page's own one.
  private static func function(_ name: String, _ arguments: String, _ callback: String) -> String {
    let outer = "parent.window[\"\(name)\(callback)\"]"
    return "function \(name)(\(arguments)){\(outer)&&\(outer)(\(arguments));}\n"
  }

  /// Returns the page whose end tells that the client has left.
  private static func page(of session: LongPollSession) -> String {
    let address = "/.lp?disconn=t&id=\(session.id)&pw=\(session.password)"
    return """
      <html><body><script>
      window.addEventListener("unload", function () { new Image().src = "\(address)"; });
      </script></body></html>
      """
  }

  private static func script(_ text: String) -> Response {
    Response(
      status: .ok,
      headers: [.contentType: "application/javascript", .cacheControl: "no-cache"],
      body: .whole(ByteBuffer(string: text))
    )
  }
}
