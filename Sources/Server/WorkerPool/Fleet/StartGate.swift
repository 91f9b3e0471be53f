import DequeModule

/// The admission control for starting worker processes, across all functions.
///
/// A place is the right of one worker process to exist, and an owner is one version of one
/// function. An owner's first worker matters more than its others, because without it the function
/// cannot run at all. Therefore the places of the machine are divided:
///
/// - `firstPlaces` can hold only the first worker of an owner. All additional workers together have
///   `additionalMax` places, however many one function requests. Every function finds a place for
///   its first worker while functions do not outnumber first places and no replaced workers remain.
/// - `deploymentPlaces` are reserved for the first workers of a deployment that does not serve yet.
///   A new deployment is the way to fix functions that hang.
///
/// The owner with the fewest workers comes first, then the earliest request. `live` is bounded
/// because the machine's resources are. `starting` is bounded so that a deployment of fifty
/// functions does not slow down running calls. A worker that takes long to start stops counting as
/// starting, so that it does not delay others.
struct StartGate<Worker: Hashable, Owner: Hashable & Comparable> {
  /// The role of an owner in its deployment.
  enum Role {
    /// It does not serve yet; its first worker must prove that it can.
    case deploying
    case serving
    /// Another version serves; all workers of this owner count as additional ones.
    case replaced
  }

  private struct Queued {
    var worker: Worker
    var number: Int
  }

  /// The live and waiting workers of one owner.
  private struct Workers {
    var role = Role.replaced
    var live = 0
    /// The number of live workers that are about to exit.
    var leaving = 0
    var queue = Deque<Queued>()
    /// True if all workers of the owner have been asked to end.
    var isEnding = false

    var isWaiting: Bool { !queue.isEmpty }
    var waitsForFirst: Bool { live == 0 && isWaiting }
    var additional: Int { Self.additional(of: live, role) }
    var additionalStaying: Int { Self.additional(of: live - leaving, role) }

    private static func additional(of count: Int, _ role: Role) -> Int {
      role == .replaced ? count : max(0, count - 1)
    }
  }

  /// The position in the waiting order of an owner whose workers wait.
  private struct QueuePosition: Comparable {
    /// The number of its live workers; -1 for the first worker of a deployment.
    var rank: Int
    /// The number of its oldest waiting request.
    var number: Int
    var owner: Owner

    static func < (left: Self, right: Self) -> Bool {
      (left.rank, left.number) < (right.rank, right.number)
    }
  }

  /// Sums over all owners.
  private struct Totals {
    var queued = 0
    var waiting = 0
    var waitingForFirst = 0
    var deployingWaiting = 0
    var additional = 0
    var additionalStaying = 0
    var ownersWithAdditional = 0

    /// Adds an owner's numbers, or subtracts them if `sign` is -1.
    mutating func count(_ workers: Workers, sign: Int) {
      queued += sign * workers.queue.count
      if workers.isWaiting { waiting += sign }
      if workers.waitsForFirst { waitingForFirst += sign }
      if workers.waitsForFirst, workers.role == .deploying { deployingWaiting += sign }
      additional += sign * workers.additional
      additionalStaying += sign * workers.additionalStaying
      if workers.additionalStaying > 0 { ownersWithAdditional += sign }
    }
  }

  /// The time after which a slow start no longer delays others.
  static var patience: Duration { .seconds(2) }

  private let startingMax: Int
  private let liveMax: Int
  private var starting: [Worker: Duration] = [:]
  private var live: [Worker: Owner] = [:]
  private var leaving: Set<Worker> = []
  /// Live workers that will exit once their invocations are done, however long that takes.
  private var yielding: Set<Worker> = []
  private var owners: [Owner: Workers] = [:]
  /// The roles of owners that are not replaced.
  private var roles: [Owner: Role] = [:]
  private var queue = SortedList<QueuePosition>()
  private var totals = Totals()
  private var requests = 0

  /// Creates a gate that admits `startingMax` starting workers at a time and `liveMax` in total.
  init(startingMax: Int, liveMax: Int) {
    self.startingMax = startingMax
    self.liveMax = liveMax
  }

  // MARK: Owners

  /// Sets an owner's role; an owner without a role counts as replaced.
  mutating func set(_ owner: Owner, _ role: Role) {
    roles[owner] = role == .replaced ? nil : role
    change(owner) { _ in }
  }

  /// Records that all workers of an owner have been asked to end.
  mutating func ends(_ owner: Owner) {
    change(owner) { $0.isEnding = true }
  }

  /// True if an owner has live workers that have not been asked to end.
  func stays(_ owner: Owner) -> Bool {
    owners[owner].map { $0.live > $0.leaving && !$0.isEnding } ?? false
  }

  // MARK: Shortage

  /// The places that only first workers may take: one per function, within bounds.
  ///
  /// At least a tenth of all places are reserved, so that a larger deployment finds places while
  /// workers of the previous one hang. At most half are reserved, including `deploymentPlaces`:
  /// with many functions, most of them idle, the busy functions may still have several workers.
  var firstPlaces: Int { min(max(roles.count, liveMax / 10), liveMax / 2 - deploymentPlaces) }

  /// The maximum number of workers beyond the first ones.
  var additionalMax: Int { liveMax - deploymentPlaces - firstPlaces }

  /// The places that only first workers of a deployment that does not serve yet may take.
  ///
  /// With two hundred places these are four, one for each worker that may start at the same time.
  var deploymentPlaces: Int { liveMax / 50 }

  /// The number of places that waiting workers lack; the exit of any live worker provides one.
  ///
  /// Workers that are about to exit are already counted as free places.
  var placesMissing: Int { shortage.first + shortage.additional }

  /// The number of first workers in `placesMissing`.
  var firstsMissing: Int { shortage.first }

  /// The number of waiting workers that could start only if an additional worker exited.
  var sharesMissing: Int { shortage.shares }

  /// The number of waiting workers for which not even a busy worker has been asked to leave.
  var placesUnassigned: Int { max(0, placesMissing + sharesMissing - yielding.count) }

  /// The number of first workers that would still wait after all ending workers have exited.
  var firstWorkersUnassigned: Int {
    guard shortage.first > 0 else { return 0 }
    let ending = owners.values.reduce(0) { $0 + ($1.isEnding ? $1.live - $1.leaving : 0) }
    return max(0, shortage.first - ending)
  }

  /// True if the exit of some live worker could let a waiting worker start.
  var isShort: Bool { placesMissing > 0 || sharesMissing > 0 && hasAdditionalOfOthers }

  private var shortage: (first: Int, additional: Int, shares: Int) {
    let free = liveMax - live.count + leaving.count
    let serving = totals.waitingForFirst - totals.deployingWaiting
    let forServing = max(0, free - totals.deployingWaiting - deploymentPlaces)
    let first = max(0, totals.deployingWaiting - free) + max(0, serving - forServing)
    let additional = totals.queued - totals.waitingForFirst
    let share = min(additional, max(0, additionalMax - totals.additionalStaying))
    return (first, max(0, share - max(0, forServing - serving)), additional - share)
  }

  /// True if an owner has additional workers while a worker of another owner waits.
  private var hasAdditionalOfOthers: Bool {
    guard totals.waiting == 1, let only = queue.first?.owner else { return totals.waiting > 0 }
    let hasAdditional = owners[only].map { $0.additionalStaying > 0 } ?? false
    return totals.ownersWithAdditional > (hasAdditional ? 1 : 0)
  }

  /// True if an idle worker of an owner should make room for a waiting worker of another owner.
  func mayGiveWay(_ owner: Owner) -> Bool {
    guard placesMissing == 0 else { return true }
    guard sharesMissing > 0, let workers = owners[owner] else { return false }
    return workers.additionalStaying > 0 && totals.queued > workers.queue.count
  }

  /// True if an owner's workers wait because no place is left for them.
  func lacksPlace(_ owner: Owner) -> Bool {
    owners[owner].map { $0.isWaiting && !hasPlace(for: $0) } ?? false
  }

  /// The owners whose first workers wait while too few places are free or about to become free.
  var lackingFirst: [Owner] {
    guard shortage.first > 0 else { return [] }
    return owners.filter { $0.value.waitsForFirst && !hasPlace(for: $0.value) }.map(\.key)
  }

  /// The owner with the most workers, if it has at least two more than the first waiting owner.
  ///
  /// Owners that are replaced do not count.
  var ownerWithMostWorkers: Owner? {
    guard let first = queue.first?.owner, let least = owners[first]?.live else { return nil }
    let most = owners.filter { $0.value.role != .replaced }
      .max { ($0.value.live, $1.key) < ($1.value.live, $0.key) }
    return most.flatMap { $0.value.live > least + 1 ? $0.key : nil }
  }

  /// The number of live workers of each owner, with the owner's role.
  var holders: [(owner: Owner, role: Role, live: Int)] {
    owners.filter { $0.value.live > 0 }.map { ($0.key, $0.value.role, $0.value.live) }
  }

  // MARK: Workers

  /// The time at which `admit` may admit a worker even if nothing else happens; nil if never.
  func wake(now: Duration) -> Duration? {
    guard totals.queued > 0, live.count < liveMax else { return nil }
    return starting.values.filter { $0 + Self.patience > now }.min().map { $0 + Self.patience }
  }

  /// Requests a start; returns the workers that may start now.
  mutating func request(_ worker: Worker, of owner: Owner, now: Duration) -> [Worker] {
    requests += 1
    let queued = Queued(worker: worker, number: requests)
    change(owner) { $0.queue.append(queued) }
    return admit(now: now)
  }

  /// Withdraws a request.
  mutating func withdraw(_ worker: Worker, of owner: Owner) {
    guard let place = owners[owner]?.queue.lastIndex(where: { $0.worker == worker }) else { return }
    change(owner) { $0.queue.remove(at: place) }
  }

  /// Records that a worker responds; returns the workers that may start now.
  mutating func ready(_ worker: Worker, now: Duration) -> [Worker] {
    starting[worker] = nil
    return admit(now: now)
  }

  /// Records that a live worker is about to exit.
  mutating func leaves(_ worker: Worker) {
    guard let owner = live[worker] else { return }
    yielding.remove(worker)
    if leaving.insert(worker).inserted { change(owner) { $0.leaving += 1 } }
  }

  /// Records that a live worker will exit once its invocations are done.
  mutating func yields(_ worker: Worker) {
    if live[worker] != nil, !leaving.contains(worker) { yielding.insert(worker) }
  }

  /// Records that an admitted worker has exited, or never started.
  ///
  /// Returns the workers that may start now.
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

  /// Returns the workers that may start now.
  mutating func admit(now: Duration) -> [Worker] {
    var admitted: [Worker] = []
    var slots = startingMax - starting.values.count { $0 + Self.patience > now }
    // If the first owner in the order has no place, no other owner has: see `hasPlace`.
    while slots > 0, let owner = queue.first?.owner, let workers = owners[owner],
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

  /// True if there is a place for one more worker of an owner.
  private func hasPlace(for workers: Workers) -> Bool {
    let free = liveMax - live.count
    if workers.live == 0, workers.role == .deploying { return free > 0 }
    let isWithinShare = workers.live == 0 || totals.additional < additionalMax
    return isWithinShare && free > deploymentPlaces
  }

  /// Changes an owner's numbers, and updates its position in the waiting order and the totals.
  private mutating func change(_ owner: Owner, _ change: (inout Workers) -> Void) {
    var workers = owners[owner] ?? Workers()
    if let position = position(of: workers, owner) { queue.remove(position) }
    if owners[owner] != nil { totals.count(workers, sign: -1) }
    owners[owner] = nil
    change(&workers)
    workers.role = roles[owner] ?? .replaced
    if let position = position(of: workers, owner) { queue.insert(position) }
    guard workers.live > 0 || workers.isWaiting else { return }
    owners[owner] = workers
    totals.count(workers, sign: 1)
  }

  private func position(of workers: Workers, _ owner: Owner) -> QueuePosition? {
    workers.queue.first.map { first in
      let rank = workers.waitsForFirst && workers.role == .deploying ? -1 : workers.live
      return QueuePosition(rank: rank, number: first.number, owner: owner)
    }
  }
}
