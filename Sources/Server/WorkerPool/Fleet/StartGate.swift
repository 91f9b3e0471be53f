import DequeModule

/// Decides which worker process may be started next, over all functions.
///
/// An owner is one version of one function. Its first worker matters more than its others: without
/// one, nothing of the function runs. So the places of the machine are divided:
///
/// - `firstPlaces` of them can hold nothing but the first worker of an owner. All further workers
///   together have `furtherMax`, however many one function asks for. While there are no more
///   functions than first places, and no workers of replaced versions, every function finds a place
///   for its first worker.
/// - `deploymentPlaces` are for the first workers of a deployment that is being tried, because a
///   deployment is what fixes functions that hang.
///
/// Whoever has the fewest workers comes first, then the earliest request. `live` is bounded because
/// the machine is, and `starting` so that a deployment of fifty functions does not slow the calls
/// already running. A worker that takes long to start no longer counts as starting, so that it
/// holds up no other.
struct StartGate<Worker: Hashable, Owner: Hashable & Comparable> {
  /// The role of an owner in its deployment.
  enum Role {
    /// It does not serve yet: its first worker proves that it can.
    case deploying
    case serving
    /// Another version serves; all its workers count as further ones.
    case replaced
  }

  private struct Queued {
    var worker: Worker
    var number: Int
  }

  /// The workers of one owner: how many live, and those that wait.
  private struct Workers {
    var role = Role.replaced
    var live = 0
    /// Live workers that are about to exit.
    var leaving = 0
    var queue = Deque<Queued>()
    /// Whether all its workers have been asked to end.
    var isEnding = false

    var isWaiting: Bool { !queue.isEmpty }
    var waitsForFirst: Bool { live == 0 && isWaiting }
    var further: Int { Self.further(of: live, role) }
    var furtherStaying: Int { Self.further(of: live - leaving, role) }

    private static func further(of count: Int, _ role: Role) -> Int {
      role == .replaced ? count : max(0, count - 1)
    }
  }

  /// The turn of an owner whose workers wait.
  private struct Turn: Comparable {
    /// The workers it has; one fewer than none for a deployment's first.
    var rank: Int
    /// The number of its first request.
    var number: Int
    var owner: Owner

    static func < (left: Self, right: Self) -> Bool {
      (left.rank, left.number) < (right.rank, right.number)
    }
  }

  /// Sums over all owners.
  private struct Totals {
    /// Functions that serve or are being deployed.
    var functions = 0
    var queued = 0
    var waiting = 0
    var waitingForFirst = 0
    var deployingWaiting = 0
    var further = 0
    var furtherStaying = 0
    var ownersOfFurther = 0

    mutating func count(_ workers: Workers, _ times: Int) {
      queued += times * workers.queue.count
      if workers.isWaiting { waiting += times }
      if workers.waitsForFirst { waitingForFirst += times }
      if workers.waitsForFirst, workers.role == .deploying { deployingWaiting += times }
      further += times * workers.further
      furtherStaying += times * workers.furtherStaying
      if workers.furtherStaying > 0 { ownersOfFurther += times }
    }
  }

  /// The longest start that holds up others.
  static var patience: Duration { .seconds(2) }

  private let startingMax: Int
  private let liveMax: Int
  private var starting: [Worker: Duration] = [:]
  private var live: [Worker: Owner] = [:]
  private var leaving: Set<Worker> = []
  /// Live workers that exit once they are done, whenever that is.
  private var yielding: Set<Worker> = []
  private var owners: [Owner: Workers] = [:]
  /// The roles of owners that are not replaced.
  private var roles: [Owner: Role] = [:]
  private var turns = SortedList<Turn>()
  private var totals = Totals()
  private var requests = 0

  /// A gate that lets pass `startingMax` workers at once and `liveMax` in all.
  init(startingMax: Int, liveMax: Int) {
    self.startingMax = startingMax
    self.liveMax = liveMax
  }

  // MARK: Owners

  /// Notes an owner's role; one without a role is replaced.
  mutating func set(_ owner: Owner, _ role: Role) {
    roles[owner] = role == .replaced ? nil : role
    change(owner) { _ in }
  }

  /// Notes that all workers of an owner have been asked to end.
  mutating func ends(_ owner: Owner) {
    change(owner) { $0.isEnding = true }
  }

  /// Whether workers of an owner live that nobody has asked to end.
  func stays(_ owner: Owner) -> Bool {
    owners[owner].map { $0.live > $0.leaving && !$0.isEnding } ?? false
  }

  // MARK: Shortage

  /// Places that only first workers may take: one a function within bounds.
  ///
  /// A tenth are kept in any case, so that a larger deployment finds places beside hanging workers
  /// of the one before it. More than half are not: with many functions, most of them idle, the busy
  /// ones may still have several workers.
  var firstPlaces: Int { min(max(roles.count, liveMax / 10), liveMax / 2 - deploymentPlaces) }

  /// The most workers beyond the first ones.
  var furtherMax: Int { liveMax - deploymentPlaces - firstPlaces }

  /// Places that only the first workers of a deployment which does not serve yet may take.
  ///
  /// Four of two hundred: one for each worker that may start at the same time.
  var deploymentPlaces: Int { liveMax / 50 }

  /// Waiting workers that the exit of any live worker would help, beyond those about to exit.
  var placesMissing: Int { shortage.first + shortage.further }

  /// Waiting first workers among those.
  var firstsMissing: Int { shortage.first }

  /// Waiting workers that only the exit of a further worker would help.
  var sharesMissing: Int { shortage.shares }

  /// Waiting workers for which no busy worker has been asked to go either.
  var placesUnpromised: Int { max(0, placesMissing + sharesMissing - yielding.count) }

  /// First workers that would still wait when all workers that were asked to end have ended.
  var firstsUnpromised: Int {
    guard shortage.first > 0 else { return 0 }
    let ending = owners.values.reduce(0) { $0 + ($1.isEnding ? $1.live - $1.leaving : 0) }
    return max(0, shortage.first - ending)
  }

  /// Whether the exit of some live worker could let a waiting one start.
  var isShort: Bool { placesMissing > 0 || sharesMissing > 0 && hasFurtherOfOthers }

  private var shortage: (first: Int, further: Int, shares: Int) {
    let free = liveMax - live.count + leaving.count
    let serving = totals.waitingForFirst - totals.deployingWaiting
    let forServing = max(0, free - totals.deployingWaiting - deploymentPlaces)
    let first = max(0, totals.deployingWaiting - free) + max(0, serving - forServing)
    let further = totals.queued - totals.waitingForFirst
    let share = min(further, max(0, furtherMax - totals.furtherStaying))
    return (first, max(0, share - max(0, forServing - serving)), further - share)
  }

  /// Whether an owner has further workers while another one waits.
  private var hasFurtherOfOthers: Bool {
    guard totals.waiting == 1, let only = turns.first?.owner else { return totals.waiting > 0 }
    return totals.ownersOfFurther > (owners[only].map { $0.furtherStaying > 0 } ?? false ? 1 : 0)
  }

  /// Whether an idle worker of an owner should make place for a waiting one of another.
  func mayGiveWay(_ owner: Owner) -> Bool {
    guard placesMissing == 0 else { return true }
    guard sharesMissing > 0, let workers = owners[owner] else { return false }
    return workers.furtherStaying > 0 && totals.queued > workers.queue.count
  }

  /// Whether an owner's workers wait because no place is left for them.
  func lacksPlace(_ owner: Owner) -> Bool {
    owners[owner].map { $0.isWaiting && !hasPlace(for: $0) } ?? false
  }

  /// The owners whose first workers wait while too few places are free or about to be.
  var lackingFirst: [Owner] {
    guard shortage.first > 0 else { return [] }
    return owners.filter { $0.value.waitsForFirst && !hasPlace(for: $0.value) }.map(\.key)
  }

  /// The owner to give up a worker: it has at least two more than one that waits.
  var richest: Owner? {
    guard let first = turns.first?.owner, let least = owners[first]?.live else { return nil }
    let most = owners.filter { $0.value.role != .replaced }
      .max { ($0.value.live, $1.key) < ($1.value.live, $0.key) }
    return most.flatMap { $0.value.live > least + 1 ? $0.key : nil }
  }

  /// The live workers of each owner, and the owner's role.
  var holders: [(owner: Owner, role: Role, live: Int)] {
    owners.filter { $0.value.live > 0 }.map { ($0.key, $0.value.role, $0.value.live) }
  }

  // MARK: Workers

  /// When `admit` may let a worker pass although nothing else has happened, or nil.
  func wake(now: Duration) -> Duration? {
    guard totals.queued > 0, live.count < liveMax else { return nil }
    return starting.values.filter { $0 + Self.patience > now }.min().map { $0 + Self.patience }
  }

  /// Asks for a start; returns the workers that may start now.
  mutating func request(_ worker: Worker, of owner: Owner, now: Duration) -> [Worker] {
    requests += 1
    let queued = Queued(worker: worker, number: requests)
    change(owner) { $0.queue.append(queued) }
    return admit(now: now)
  }

  /// Takes a request back.
  mutating func withdraw(_ worker: Worker, of owner: Owner) {
    guard let place = owners[owner]?.queue.lastIndex(where: { $0.worker == worker }) else { return }
    change(owner) { $0.queue.remove(at: place) }
  }

  /// Notes that a worker answers, so that the next may start.
  mutating func ready(_ worker: Worker, now: Duration) -> [Worker] {
    starting[worker] = nil
    return admit(now: now)
  }

  /// Notes that a live worker is about to exit.
  mutating func leaves(_ worker: Worker) {
    guard let owner = live[worker] else { return }
    yielding.remove(worker)
    if leaving.insert(worker).inserted { change(owner) { $0.leaving += 1 } }
  }

  /// Notes that a live worker exits once it is done.
  mutating func yields(_ worker: Worker) {
    if live[worker] != nil, !leaving.contains(worker) { yielding.insert(worker) }
  }

  /// Notes that a worker that was let pass has exited, or never started.
  mutating func exited(_ worker: Worker, now: Duration) -> [Worker] {
    let wasLeaving = leaving.remove(worker) != nil
    if let owner = live.removeValue(forKey: worker) {
      change(owner) { workers in
        workers.live -= 1
        if wasLeaving { workers.leaving -= 1 }
      }
    }
    starting[worker] = nil
    yielding.remove(worker)
    return admit(now: now)
  }

  /// The workers that may start now.
  mutating func admit(now: Duration) -> [Worker] {
    var admitted: [Worker] = []
    var slots = startingMax - starting.values.count { $0 + Self.patience > now }
    // No other turn can have a place when the first one has none: see `hasPlace`.
    while slots > 0, let owner = turns.first?.owner, let workers = owners[owner],
      hasPlace(for: workers), let next = workers.queue.first
    {
      live[next.worker] = owner
      change(owner) { workers in
        workers.queue.removeFirst()
        workers.live += 1
      }
      starting[next.worker] = now
      admitted.append(next.worker)
      slots -= 1
    }
    return admitted
  }

  /// Whether the next worker of an owner may live beside those that live now.
  private func hasPlace(for workers: Workers) -> Bool {
    let free = liveMax - live.count
    if workers.live == 0, workers.role == .deploying { return free > 0 }
    let isWithinShare = workers.live == 0 || totals.further < furtherMax
    return isWithinShare && free > deploymentPlaces
  }

  /// Changes an owner's numbers, and its turn and the sums with them.
  private mutating func change(_ owner: Owner, _ change: (inout Workers) -> Void) {
    var workers = owners[owner] ?? Workers()
    if let turn = turn(of: workers, owner) { turns.remove(turn) }
    if owners[owner] != nil { totals.count(workers, -1) }
    owners[owner] = nil
    change(&workers)
    workers.role = roles[owner] ?? .replaced
    if let turn = turn(of: workers, owner) { turns.insert(turn) }
    guard workers.live > 0 || workers.isWaiting else { return }
    owners[owner] = workers
    totals.count(workers, 1)
  }

  private func turn(of workers: Workers, _ owner: Owner) -> Turn? {
    workers.queue.first.map { first in
      let rank = workers.waitsForFirst && workers.role == .deploying ? -1 : workers.live
      return Turn(rank: rank, number: first.number, owner: owner)
    }
  }
}
