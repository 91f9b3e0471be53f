import HTTPSupport
package import HTTPTypes
package import Invocation
package import NIOCore

/// Calls and events with short bodies: one task each, begun on the connection's event loop.
extension FunctionHost: ShortResponder {
  package func takes(_ head: HTTPRequest) -> Bool {
    head.method == .post && !ServerSentEvents.areWanted(by: head)
      && !streamsBody(of: head) && head.path?.hasPrefix("/__/") != true
  }

  package func answer(
    _ head: HTTPRequest,
    _ body: ByteBuffer,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (InvocationReply) -> Void
  ) -> @Sendable () -> Void {
    // The connection owns the task and cancels it when the client leaves.
    let task = Task { reply(await respond(to: head, body: body)) }
    return { task.cancel() }
  }
}
