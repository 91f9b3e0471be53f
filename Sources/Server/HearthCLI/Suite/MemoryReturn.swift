import CMemory
import Foundation

/// The return of memory to the system after a burst of requests.
enum MemoryReturn {
  private static let interval = 5.0
  /// The free memory that is worth a search through all of it.
  private static let bytesMin = 32 << 20

  /// Looks for free memory from time to time, on a thread of its own because a search takes long.
  static func begin() {
    // The thread ends with the process.
    Thread.detachNewThread {
      while true {
        Thread.sleep(forTimeInterval: interval)
        hearth_return_scattered_memory(bytesMin)
      }
    }
  }
}
