import Invocation
import Logging
import Synchronization

// macOS has the module Runtime from version 26 on; there the place of an error remains unknown.
#if !canImport(Darwin) && canImport(Runtime)
  import LibC
  import Runtime
#endif

/// The recorder of the error that made one invocation fail, with the place that threw it.
///
/// Swift's errors do not know where they were thrown. But Swift's runtime calls a hook for each
/// `throw`, which swift-testing uses as well; this recorder's hook keeps the call stack. An error
/// has no place if its `throw` states the type of the error (`throws(MyError)`).
package final class FailureRecorder: Sendable {
  private let recorded = Mutex<FailureReason?>(nil)

  /// The error that the handler threw; nil as long as it has thrown none.
  var reason: FailureReason? { recorded.withLock { $0 } }

  /// Records the error that the handler threw and returns the place that threw it, if known.
  func record(_ error: any Error) async -> String? {
    let place = await place(of: error)
    recorded.withLock { $0 = FailureReason("\(error)", place: place) }
    return place
  }

  #if !canImport(Darwin) && canImport(Runtime)
    private struct Capture {
      var error: UInt
      var stack: Backtrace
    }

    private struct State {
      var captures: [Capture] = []
      var count = 0
      /// True while a stack is captured, because capturing throws errors itself.
      var isCapturing = false

      mutating func begin() -> Bool {
        guard !isCapturing, count < capturesMax else { return false }
        isCapturing = true
        return true
      }

      mutating func end(_ capture: Capture?) {
        isCapturing = false
        guard let capture else { return }
        count += 1
        // The memory of an earlier error may have been used again.
        captures.removeAll { $0.error == capture.error }
        captures.append(capture)
      }
    }

    private let state = Mutex(State())

    /// The maximum number of stacks that one invocation captures, at about 50 µs each.
    private static let capturesMax = 20
    private static let framesMax = 48
    private static let images = ImageMap.capture()
    private static let hooks = Mutex<(own: UInt, previous: UInt)>((0, 0))

    private typealias Hook = @convention(c) (UnsafeRawPointer) -> Void

    /// Captures the stack of each error that invocations throw from now on, in the whole process.
    ///
    /// Only the first call has an effect. A hook that is already set is called too.
    static func captureStacks() {
      guard let slot = dlsym(nil, "_swift_willThrow")?.assumingMemoryBound(to: UInt.self) else {
        return
      }
      let hook: Hook = { error in
        RunningInvocation.current?.failure.capture(UInt(bitPattern: error))
        let previous = FailureRecorder.hooks.withLock { $0.previous }
        if previous != 0 { unsafeBitCast(previous, to: Hook.self)(error) }
      }
      hooks.withLock { hooks in
        guard hooks.own == 0 else { return }
        _ = images
        hooks = (unsafeBitCast(hook, to: UInt.self), slot.pointee)
        slot.pointee = hooks.own
      }
    }

    private func capture(_ error: UInt) {
      guard state.withLock({ $0.begin() }) else { return }
      // Without a stack the error has no place, which is no reason to fail.
      let stack = try? Backtrace.capture(limit: Self.framesMax, images: Self.images)
      state.withLock { $0.end(stack.map { Capture(error: error, stack: $0) }) }
    }

    /// Returns the place in the author's code that threw an error; nil if it is unknown.
    private func place(of error: any Error) async -> String? {
      // On Linux, `any Error` is the address of the box that was thrown. The coercion keeps the
      // compiler from passing the error inside the box.
      let address = unsafeBitCast(error as any Error, to: UInt.self)
      let stack = state.withLock { $0.captures.last { $0.error == address }?.stack }
      guard let stack else { return nil }
      return await SourcePlaces.innermost(of: stack, in: Self.images)
    }
  #else
    static func captureStacks() {}

    private func place(of error: any Error) async -> String? { nil }
  #endif
}

extension FunctionScope {
  /// Logs the error that a handler threw, and keeps it for the emulator.
  func handlerThrew(_ error: any Error, level: Logger.Level = .error) async {
    var metadata: Logger.Metadata = ["error": "\(error)"]
    if let place = await RunningInvocation.current?.failure.record(error) {
      metadata["place"] = "\(place)"
    }
    logger.log(level: level, "The function failed", metadata: metadata)
  }
}
