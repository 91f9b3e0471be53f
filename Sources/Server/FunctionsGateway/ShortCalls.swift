import HTTPSupport
import HTTPTypes
import HummingbirdCore
import Invocation
import NIOCore

/// Calls of callables that go from one connection to the other without a task in between.
extension InvocationGateway: ShortResponder {
  func takes(_ head: HTTPRequest) -> Bool {
    guard head.method == .post, !ServerSentEvents.areWanted(by: head),
      case .success(let endpoint) = lookUp(FunctionTarget(head.path ?? "/"))
    else { return false }
    return endpoint.callableTrigger != nil
  }

  func answer(
    _ head: HTTPRequest,
    _ body: ByteBuffer,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (InvocationReply) -> Void
  ) -> @Sendable () -> Void {
    let invocation = invocation(of: FunctionTarget(head.path ?? "/"), head, .whole(body))
    return invoker.begin(invocation, near: eventLoop) { result in
      switch result {
      case .success(let answer): reply(answer)
      case .failure(let error): reply(self.answer(to: error, invocation).reply(to: head))
      }
    }
  }
}
