package import HTTPSupport
package import HTTPTypes
import HummingbirdCore
import Invocation
package import NIOCore

/// Calls of callables that go from one connection to the other without a task between.
extension InvocationGateway: ShortResponder {
  package func takes(_ head: HTTPRequest) -> Bool {
    guard head.method == .post, head.headerFields[.accept] != OwnAnswer.streamType,
      case .success(let endpoint) = lookUp(FunctionTarget(head.path ?? "/"))
    else { return false }
    return endpoint.callableTrigger != nil
  }

  package func answer(
    _ head: HTTPRequest,
    _ body: ByteBuffer,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (ShortReply) -> Void
  ) -> @Sendable () -> Void {
    let target = FunctionTarget(head.path ?? "/")
    let id = makeID()
    var invocation = InvocationRequest(id: id, function: target.name, head: head, body: body)
    invocation.head.path = target.path
    return invoker.begin(invocation, near: eventLoop) { result in
      switch result {
      case .success(let answer):
        if case .whole(let body) = answer.body { return reply(.whole(answer.head, body)) }
        reply(.response(response(answer, ClientWatch(), nil)))
      case .failure(let error):
        let request = Request(head: head, body: RequestBody(buffer: ByteBuffer()))
        let own = self.answer(to: error, id: id, function: target.name)
        reply(.response(own.response(to: request)))
      }
    }
  }
}
