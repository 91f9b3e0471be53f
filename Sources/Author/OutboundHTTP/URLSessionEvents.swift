import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The delegate of a session, which passes the events of each task to its exchange.
///
/// The session calls it on its queue, one event after another. Events of an exchange that has ended
/// are dropped.
final class URLSessionEvents: NSObject, URLSessionDataDelegate, Sendable {
  private let exchanges = Mutex<[Int: URLSessionExchange]>([:])

  /// Passes the events of a task to its exchange until `remove`.
  func add(_ exchange: URLSessionExchange, for task: URLSessionTask) {
    exchanges.withLock { $0[task.taskIdentifier] = exchange }
  }

  /// Drops the events of a task from now on.
  func remove(_ task: URLSessionTask) {
    // The exchange is released outside the lock.
    _ = exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }
  }

  private func exchange(of task: URLSessionTask) -> URLSessionExchange? {
    exchanges.withLock { $0[task.taskIdentifier] }
  }

  func urlSession(
    _ session: URLSession,
    dataTask: URLSessionDataTask,
    didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    exchange(of: dataTask)?.headArrived(response)
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    exchange(of: dataTask)?.received(data)
  }

  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    didSendBodyData bytesSent: Int64,
    totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    exchange(of: task)?.bodyWasSent()
  }

  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    guard let exchange = exchange(of: task) else {
      // The task is cancelled, and FoundationNetworking would end the process at this answer.
      #if !canImport(FoundationNetworking)
        completionHandler(nil)
      #endif
      return
    }
    completionHandler(exchange.follows(request) ? request : nil)
  }

  #if canImport(FoundationNetworking)
    /// Ends a response with status 401, whose body has arrived by then.
    ///
    /// FoundationNetworking asks for credentials and would otherwise wait for them forever.
    func urlSession(
      _ session: URLSession,
      task: URLSessionTask,
      didReceive challenge: URLAuthenticationChallenge,
      completionHandler:
        @escaping @Sendable (
          URLSession.AuthChallengeDisposition, URLCredential?
        ) -> Void
    ) {
      exchange(of: task)?.finished(nil)
      completionHandler(.cancelAuthenticationChallenge, nil)
    }
  #endif

  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    didCompleteWithError error: (any Error)?
  ) {
    exchange(of: task)?.finished(error)
  }
}
