import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A transfer with its task of a `URLSession`.
///
/// The session's events arrive one after another; `cancel` and `resume` may be called at any time.
final class URLSessionExchange: TransferDriver {
  let transfer: Transfer
  private let task: URLSessionDataTask
  private let session: URLSession
  private let events: URLSessionEvents
  private let isAlone: Bool
  private let progress = Mutex(Progress())
  private let timer = Mutex<Task<Void, Never>?>(nil)
  /// True while the task is suspended.
  private let isSuspended = Mutex(false)

  private struct Progress {
    /// True if the server may have received a part of the request.
    var isSent = false
    var redirects = 0
    var receivedBytes = 0
  }

  /// Creates the exchange of a task that has not been resumed.
  ///
  /// If `isAlone` is true, the session ends with the task.
  init(
    _ transfer: Transfer,
    _ task: URLSessionDataTask,
    in session: URLSession,
    events: URLSessionEvents,
    isAlone: Bool
  ) {
    self.transfer = transfer
    self.task = task
    self.session = session
    self.events = events
    self.isAlone = isAlone
    events.add(self, for: task)
  }

  /// Sends the request, unless it was cancelled before.
  func start() {
    startTimer()
    if !transfer.isEnded { task.resume() }
    if isAlone { session.finishTasksAndInvalidate() }
  }

  func cancel(_ transfer: Transfer) {
    end(OutboundHTTPError(.cancelled, "the request was cancelled"))
  }

  func resume(_ transfer: Transfer) {
    adjustFlow()
  }

  // MARK: Events of the session

  func headArrived(_ response: URLResponse) {
    guard let response = response as? HTTPURLResponse else { return }
    progress.withLock { $0.isSent = true }
    transfer.headArrived(ResponseHead(response))
  }

  func received(_ data: Data) {
    progress.withLock { $0.receivedBytes += data.count }
    switch data.withUnsafeBytes({ transfer.received($0) }) {
    case .stored, .pause: break
    case .hold: adjustFlow()
    // The transfer has ended, by this piece or before.
    case .abort: release()
    }
  }

  func bodyWasSent() {
    progress.withLock { $0.isSent = true }
  }

  /// Returns true if a redirect is to be followed; false if it is the response.
  ///
  /// A redirect beyond the limit or to another scheme ends the exchange.
  func follows(_ next: URLRequest) -> Bool {
    let request = transfer.request
    guard request.redirectsMax > 0 else { return false }
    let redirects = progress.withLock {
      $0.isSent = true
      $0.redirects += 1
      return $0.redirects
    }
    if redirects > request.redirectsMax {
      end(failure(.failed, "there are more than \(request.redirectsMax) redirects"))
    } else if next.url?.scheme?.lowercased() != task.originalRequest?.url?.scheme?.lowercased() {
      end(failure(.invalidRequest, "the redirect is to another scheme"))
    } else if losesBody(next) {
      end(failure(.failed, "a redirect of a request with a body cannot be followed"))
    } else {
      return true
    }
    return false
  }

  /// Returns true if FoundationNetworking would send the next request without its body.
  private func losesBody(_ next: URLRequest) -> Bool {
    #if canImport(FoundationNetworking)
      !transfer.request.body.isEmpty && next.httpBody != nil
    #else
      false
    #endif
  }

  /// Ends the transfer as its task ended, with all of the response if `error` is nil.
  func finished(_ error: (any Error)?) {
    guard !transfer.isEnded else { return stopTimer() }
    if let error {
      transfer.ended(failure(error))
    } else if let response = task.response as? HTTPURLResponse {
      // FoundationNetworking has no event for the head of a redirect without a location.
      transfer.headArrived(ResponseHead(response))
      let isWhole = response.isWhole(
        bytes: progress.withLock { $0.receivedBytes },
        method: task.currentRequest?.httpMethod
      )
      transfer.ended(isWhole ? nil : failure(.failed, "the response is incomplete"))
    } else {
      transfer.ended(nil)
    }
    stopTimer()
    events.remove(task)
  }

  // MARK: The end

  /// Ends the transfer for its reader, and then its task; the first end counts.
  private func end(_ error: OutboundHTTPError) {
    if transfer.ended(error) { release() }
  }

  /// Cancels the task of a transfer that has ended.
  private func release() {
    stopTimer()
    events.remove(task)
    // The task is cancelled on the session's queue, not here. In FoundationNetworking, `cancel`
    // waits for another thread, which a cancellation handler must not do. And the process would end
    // if a delegate answered about a redirect of a cancelled task.
    session.delegateQueue.addOperation { [task] in task.cancel() }
  }

  private func startTimer() {
    guard let deadline = transfer.deadline else { return }
    // The exchange owns the task, which ends at the deadline or with `stopTimer`.
    let timer = Task { [weak self] in
      do {
        try await Task.sleep(until: deadline, clock: .continuous)
      } catch {
        return
      }
      guard let self else { return }
      end(failure(.timedOut, "the request timed out"))
    }
    self.timer.withLock { $0 = timer }
    // The transfer may have ended in between.
    if transfer.isEnded { stopTimer() }
  }

  private func stopTimer() {
    timer.withLock { timer in
      timer?.cancel()
      timer = nil
    }
  }

  /// Suspends or resumes the task, as the transfer needs it now.
  ///
  /// The state is read under the lock, so that the last of several calls leaves the task right.
  private func adjustFlow() {
    isSuspended.withLock { isSuspended in
      let isPaused = transfer.isPaused
      guard isPaused != isSuspended else { return }
      isSuspended = isPaused
      if isPaused { task.suspend() } else { task.resume() }
    }
  }

  // MARK: Errors

  private func failure(_ error: any Error) -> OutboundHTTPError {
    guard let error = error as? URLError else { return failure(.failed, "\(error)") }
    let kind = OutboundHTTPError.Kind(error.code, mayBeSent: mayBeSent)
    return failure(kind, error.localizedDescription)
  }

  private func failure(_ kind: OutboundHTTPError.Kind, _ reason: String) -> OutboundHTTPError {
    OutboundHTTPError(kind, "\(task.originalRequest?.url?.host() ?? "request"): \(reason)")
  }

  /// True unless the server has certainly not received the request.
  private var mayBeSent: Bool {
    if progress.withLock({ $0.isSent }) { return true }
    #if canImport(FoundationNetworking)
      // If one address of a host refuses a connection, FoundationNetworking also reports a later
      // error on the connection to another address as a refusal. Only a body has an event that
      // disproves it. A request that may be repeated in any case does no harm.
      return transfer.request.body.isEmpty && !transfer.request.isIdempotent
    #else
      return false
    #endif
  }
}

extension ResponseHead {
  fileprivate init(_ response: HTTPURLResponse) {
    var headers = OutboundHeaders()
    let fields = response.allHeaderFields.compactMap { name, value in
      (name as? String).flatMap { name in (value as? String).map { (name, $0) } }
    }
    for (name, value) in fields.sorted(by: { $0.0 < $1.0 }) { headers.append(name, value) }
    self.init(status: response.statusCode, headers: headers)
  }
}

extension HTTPURLResponse {
  /// Returns true unless fewer bytes of the body arrived than the response announces.
  ///
  /// Some versions of `URLSession` do not report this. The length of a compressed body is unknown.
  func isWhole(bytes: Int, method: String?) -> Bool {
    guard method != "HEAD", statusCode != 204, statusCode != 304,
      value(forHTTPHeaderField: "Content-Encoding") == nil
    else { return true }
    return bytes >= expectedContentLength
  }
}
