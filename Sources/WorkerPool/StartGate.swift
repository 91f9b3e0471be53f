import DequeModule

/// Decides which worker process may be started next, over all functions.
///
/// First come, first served, so that a function with many calls cannot keep another from its first
/// worker; `live` is bounded so that the machine is, and `starting` so that a deployment of fifty
/// functions does not slow the calls already running.
struct StartGate<Worker: Hashable> {
  private let startingMax: Int
  private let liveMax: Int
  private var starting: Set<Worker> = []
  private var live: Set<Worker> = []
  private var queue = Deque<Worker>()

  /// A gate that lets `startingMax` at once and `liveMax` in all pass.
  init(startingMax: Int, liveMax: Int) {
    self.startingMax = startingMax
    self.liveMax = liveMax
  }

  /// Whether someone waits only because too many workers live.
  var needsRoom: Bool {
    !queue.isEmpty && starting.count < startingMax && live.count >= liveMax
  }

  /// Asks for a start; returns those who may start now.
  mutating func request(_ worker: Worker) -> [Worker] {
    queue.append(worker)
    return admit()
  }

  /// The worker answers, so the next may start.
  mutating func ready(_ worker: Worker) -> [Worker] {
    starting.remove(worker)
    return admit()
  }

  /// The worker has exited, or never started.
  mutating func exited(_ worker: Worker) -> [Worker] {
    if live.remove(worker) == nil { queue.removeAll { $0 == worker } }
    starting.remove(worker)
    return admit()
  }

  private mutating func admit() -> [Worker] {
    var admitted: [Worker] = []
    while starting.count < startingMax, live.count < liveMax, let worker = queue.popFirst() {
      starting.insert(worker)
      live.insert(worker)
      admitted.append(worker)
    }
    return admitted
  }
}
