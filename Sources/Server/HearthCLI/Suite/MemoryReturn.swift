import CMemory
import ServiceLifecycle

/// The service that gives memory back to the system after a burst of requests.
struct MemoryReturn: Service {
  private static let interval: Duration = .seconds(5)
  /// The free memory that is worth a search through all of it.
  private static let bytesMin = 32 << 20

  func run() async {
    await cancelWhenGracefulShutdown {
      while true {
        // The sleep ends early only at shutdown.
        guard (try? await Task.sleep(for: Self.interval)) != nil else { return }
        hearth_return_scattered_memory(Self.bytesMin)
      }
    }
  }
}
