import Synchronization

/// The calls that are under way, each of which serves all callers who ask for the same key.
///
/// The first caller makes the call and pays for it. Cancellation ends the wait of one caller, but
/// not of the others, and not the call.
final class SharedCalls<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let underWay = Mutex<[Key: SharedResult<Value>]>([:])

  /// Returns the result of `call`, or of the call that is under way for the same key.
  ///
  /// `isOwn` is true for the caller who made the call. Rethrows its error; but if its payer has
  /// reached a limit, the other callers make their own calls.
  func value(
    of key: Key,
    call: @escaping @Sendable () async throws -> Value
  ) async throws -> (value: Value, isOwn: Bool) {
    while true {
      let (shared, isNew) = underWay.withLock { underWay in
        if let shared = underWay[key] { return (shared, false) }
        let shared = SharedResult<Value>()
        underWay[key] = shared
        return (shared, true)
      }
      if isNew {
        // These calls own the task, which serves all waiting callers. It ends with the call;
        // timeouts and a small number of attempts limit the wait.
        Task {
          let result: Result<Value, any Error>
          do { result = .success(try await call()) } catch { result = .failure(error) }
          underWay.withLock { $0[key] = nil }
          shared.finish(result)
        }
        return (try await shared.value(), true)
      }
      do {
        return (try await shared.value(), false)
      } catch let error as ServiceError where error.kind == .limitReached {
        continue
      }
    }
  }
}
