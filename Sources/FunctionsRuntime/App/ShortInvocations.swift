package import HTTPSupport
package import HTTPTypes
import Invocation
package import NIOCore

/// Calls and events whose bodies are short: one task each, begun on the connection's event loop.
extension FunctionHost: ShortResponder {
  package func takes(_ head: HTTPRequest) -> Bool {
    head.method == .post && head.headerFields[.accept] != "text/event-stream"
      && !streamsBody(of: head) && head.path?.hasPrefix("/__/") != true
  }

  package func answer(
    _ head: HTTPRequest,
    _ body: ByteBuffer,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (ShortReply) -> Void
  ) -> @Sendable () -> Void {
    // Owned by the connection, which cancels it when the client leaves.
    let task = Task {
      let answer = await respond(to: head, body: body)
      guard case .whole(let bytes) = answer.body else {
        return reply(.response(WorkerServer.response(answer, ClientWatch())))
      }
      reply(.whole(answer.head, bytes))
    }
    return { task.cancel() }
  }
}
