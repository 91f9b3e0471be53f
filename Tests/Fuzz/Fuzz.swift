import Dispatch
import FuzzedDoors
import Synchronization

/// The doors, made anew now and then because a store in memory only grows.
private let doors = Mutex((current: FuzzedDoors(), inputs: 0))
private let inputsOfStore = 5000

/// What libFuzzer calls with each input; a server at fault ends the process, which keeps the input.
@_cdecl("LLVMFuzzerTestOneInput")
public func takeInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: bytes, count: count))
  let (current, old) = doors.withLock { doors -> (FuzzedDoors, FuzzedDoors?) in
    doors.inputs += 1
    guard doors.inputs.isMultiple(of: inputsOfStore) else { return (doors.current, nil) }
    let old = doors.current
    doors.current = FuzzedDoors()
    return (doors.current, old)
  }
  let isDone = DispatchSemaphore(value: 0)
  Task {
    await old?.stop()
    if let complaint = await current.take(input) { fatalError(complaint) }
    isDone.signal()
  }
  isDone.wait()
  return 0
}
