import Dispatch
import Foundation
import FuzzTargets
import Synchronization

#if FUZZING
  /// The fuzz target, replaced regularly because an in-memory store only grows.
  let endpoints = Mutex((current: FuzzTarget(), inputs: 0))
  let inputsOfStore = 5000

  /// Runs one input; a server fault ends the process, and libFuzzer then saves the input.
  func takeInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: bytes, count: count))
    let (current, old) = endpoints.withLock { endpoints -> (FuzzTarget, FuzzTarget?) in
      endpoints.inputs += 1
      guard endpoints.inputs.isMultiple(of: inputsOfStore) else { return (endpoints.current, nil) }
      let old = endpoints.current
      endpoints.current = FuzzTarget()
      return (endpoints.current, old)
    }
    // Blocks the main thread, on which libFuzzer expects the answer.
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
      await old?.stop()
      if let complaint = await current.take(input) { fatalError(complaint) }
      isDone.signal()
    }
    isDone.wait()
    return 0
  }

  /// libFuzzer's main loop, linked by `-sanitize=fuzzer`.
  @_silgen_name("LLVMFuzzerRunDriver")
  func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
  ) -> CInt

  var count = CommandLine.argc
  var arguments = CommandLine.unsafeArgv
  exit(runFuzzer(&count, &arguments, takeInput))
#else
  print("Without libFuzzer this does nothing; `make fuzz` builds it and runs it.")
#endif
