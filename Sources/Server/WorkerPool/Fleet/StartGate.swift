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
    var number: Int
  }

  /// The workers of one function: how many live, and those that wait.
  private struct Owner {
    var live = 0
    var queue = Deque<Queued>()
  }

  /// The turn of a function whose workers wait.
  private struct Turn: Comparable {
    var live: Int
    /// The number of its first request.
    var number: Int
    var owner: String

    static func < (left: Self, right: Self) -> Bool {
      (left.live, left.number) < (right.live, right.number)
    }
  }

  /// The longest start that holds up others.
  static var patience: Duration { .seconds(2) }

  private let startingMax: Int
  private let liveMax: Int
  private var starting: [Worker: Duration] = [:]
  private var live: [Worker: String] = [:]
  /// Live workers that are about to exit.
  private var leaving: Set<Worker> = []
  /// Live workers that exit once they are done, whenever that is.
  private var yielding: Set<Worker> = []
  private var owners: [String: Owner] = [:]
  private var turns = SortedList<Turn>()
  private var queuedCount = 0
  private var requests = 0

  /// A gate that lets pass `startingMax` workers at once and `liveMax` in all.
  init(startingMax: Int, liveMax: Int) {
    self.startingMax = startingMax
    self.liveMax = liveMax
  }

  /// The waiting workers for which neither a place is free nor one about to be.
  var placesMissing: Int { max(0, queuedCount - (liveMax - live.count) - leaving.count) }

  /// Those of them for which no busy worker has been asked to go either.
  var placesUnpromised: Int { max(0, placesMissing - yielding.count) }

  /// The function to give up a worker: it has at least two more than a function that waits.
  var richest: String? {
    guard let least = turns.first?.live else { return nil }
    let counts = live.values.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    let most = counts.max { ($0.value, $1.key) < ($1.value, $0.key) }
    return most.flatMap { $0.value > least + 1 ? $0.key : nil }
  }

  /// When `admit` may let a worker pass although nothing else has happened, or nil.
  func wake(now: Duration) -> Duration? {
    guard queuedCount > 0, live.count < liveMax else { return nil }
    return starting.values.filter { $0 + Self.patience > now }.min().map { $0 + Self.patience }
  }

  /// Asks for a start; returns the workers that may start now.
  mutating func request(_ worker: Worker, of owner: String, now: Duration) -> [Worker] {
    requests += 1
    let queued = Queued(worker: worker, number: requests)
    queuedCount += 1
    change(owner) { $0.queue.append(queued) }
    return admit(now: now)
  }

  /// Takes a request back.
  mutating func withdraw(_ worker: Worker, of owner: String) {
    guard let place = owners[owner]?.queue.lastIndex(where: { $0.worker == worker }) else { return }
    queuedCount -= 1
    change(owner) { $0.queue.remove(at: place) }
  }

  /// Notes that a worker answers, so that the next may start.
  mutating func ready(_ worker: Worker, now: Duration) -> [Worker] {
    starting[worker] = nil
    return admit(now: now)
  }

  /// Notes that a live worker is about to exit.
  mutating func leaves(_ worker: Worker) {
    guard live[worker] != nil else { return }
    yielding.remove(worker)
    leaving.insert(worker)
  }

  /// Notes that a live worker exits once it is done.
  mutating func yields(_ worker: Worker) {
    if live[worker] != nil, !leaving.contains(worker) { yielding.insert(worker) }
  }

  /// Notes that a worker that was let pass has exited, or never started.
  mutating func exited(_ worker: Worker, now: Duration) -> [Worker] {
    if let owner = live.removeValue(forKey: worker) { change(owner) { $0.live -= 1 } }
    starting[worker] = nil
    leaving.remove(worker)
    yielding.remove(worker)
    return admit(now: now)
  }

  /// The workers that may start now.
  mutating func admit(now: Duration) -> [Worker] {
    var admitted: [Worker] = []
    var slots = startingMax - starting.values.count { $0 + Self.patience > now }
    while slots > 0, live.count < liveMax, let owner = turns.first?.owner,
      let next = owners[owner]?.queue.first
    {
      change(owner) { owner in
        owner.queue.removeFirst()
        owner.live += 1
      }
      queuedCount -= 1
      starting[next.worker] = now
      live[next.worker] = owner
      admitted.append(next.worker)
      slots -= 1
    }
    return admitted
  }

  /// Changes a function's numbers, and its turn with them.
  private mutating func change(_ name: String, _ change: (inout Owner) -> Void) {
    var owner = owners[name] ?? Owner()
    if let turn = turn(of: owner, name) { turns.remove(turn) }
    owners[name] = nil
    change(&owner)
    if let turn = turn(of: owner, name) { turns.insert(turn) }
    if owner.live > 0 || !owner.queue.isEmpty { owners[name] = owner }
  }

  private func turn(of owner: Owner, _ name: String) -> Turn? {
    owner.queue.first.map { Turn(live: owner.live, number: $0.number, owner: name) }
  }
}
