import DequeModule

/// Decides which worker process may be started next, over all functions.
///
/// The function with the fewest workers comes first, then the earliest request: a function with
/// thousands of calls cannot keep another from its first worker. `live` is bounded because the
/// machine is, and `starting` so that a deployment of fifty functions does not slow the calls
/// already running. A worker that takes long to start no longer counts as starting, so that it
/// holds up no other.
struct StartGate<Worker: Hashable> {
  private struct Queued {
    var worker: Worker
    var owner: String
  }

  /// The longest start that holds up others.
  static var patience: Duration { .seconds(2) }

  private let startingMax: Int
  private let liveMax: Int
  private var starting: [Worker: Duration] = [:]
  private var live: [Worker: String] = [:]
  private var leaving: Set<Worker> = []
  private var counts: [String: Int] = [:]
  private var queue = Deque<Queued>()

  /// A gate that lets pass `startingMax` workers at once and `liveMax` in all.
  init(startingMax: Int, liveMax: Int) {
    self.startingMax = startingMax
    self.liveMax = liveMax
  }

  /// Whether a worker waits only because too many live, and too few of those are leaving.
  var needsRoom: Bool { live.count >= liveMax && leaving.count < queue.count }

  /// The function to give up a worker: it has at least two more than a function that waits.
  var richest: String? {
    guard let least = queue.map({ counts[$0.owner] ?? 0 }).min(),
      let most = counts.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }),
      most.value > least + 1
    else { return nil }
    return most.key
  }

  /// When `admit` may let a worker pass although nothing else has happened, or nil.
  func wake(now: Duration) -> Duration? {
    guard !queue.isEmpty, live.count < liveMax else { return nil }
    return starting.values.filter { $0 + Self.patience > now }.min().map { $0 + Self.patience }
  }

  /// Asks for a start; returns the workers that may start now.
  mutating func request(_ worker: Worker, of owner: String, now: Duration) -> [Worker] {
    queue.append(Queued(worker: worker, owner: owner))
    return admit(now: now)
  }

  /// Notes that a worker answers, so that the next may start.
  mutating func ready(_ worker: Worker, now: Duration) -> [Worker] {
    starting[worker] = nil
    return admit(now: now)
  }

  /// Notes that a worker has been asked to go.
  mutating func isLeaving(_ worker: Worker) {
    if live[worker] != nil { leaving.insert(worker) }
  }

  /// Notes that a worker has exited, or never started.
  mutating func exited(_ worker: Worker, now: Duration) -> [Worker] {
    if let owner = live.removeValue(forKey: worker) {
      let left = (counts[owner] ?? 1) - 1
      counts[owner] = left == 0 ? nil : left
    } else {
      queue.removeAll { $0.worker == worker }
    }
    starting[worker] = nil
    leaving.remove(worker)
    return admit(now: now)
  }

  /// The workers that may start now.
  mutating func admit(now: Duration) -> [Worker] {
    var admitted: [Worker] = []
    var slots = startingMax - starting.values.count { $0 + Self.patience > now }
    while slots > 0, live.count < liveMax, let index = next() {
      let next = queue.remove(at: index)
      starting[next.worker] = now
      live[next.worker] = next.owner
      counts[next.owner, default: 0] += 1
      admitted.append(next.worker)
      slots -= 1
    }
    return admitted
  }

  /// The first worker in the queue whose function has the fewest workers.
  private func next() -> Int? {
    queue.indices.min {
      (counts[queue[$0].owner] ?? 0, $0) < (counts[queue[$1].owner] ?? 0, $1)
    }
  }
}
