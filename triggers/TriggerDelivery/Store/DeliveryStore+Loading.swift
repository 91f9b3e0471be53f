import DocumentModel
import StorageEngine

/// Loads a function's pending deliveries from storage, a bounded number at a time.
extension DeliveryStore {
  /// The parameters of a load.
  struct LoadRequest: Sendable {
    var function: String
    /// The deliveries in memory, which are left out.
    var known: Set<EventPlace>
    /// The place after which untried deliveries are loaded.
    var position: EventPlace?
    /// The maximum number of deliveries to load.
    ///
    /// `bytesMax` is the maximum size of their events. One delivery is loaded regardless of its
    /// size.
    var countMax: Int
    var bytesMax: Int
    /// The time by which postponed deliveries must be due to be loaded.
    var now: Timestamp
    /// The lanes whose next deliveries may enter the window.
    var lanes: [DeliveryLane]
    /// The deliveries of each lane in the window, and the number that may still enter.
    var room: LaneCapacity
  }

  /// A delivery with its event; the event is nil if it is no longer stored.
  struct Candidate: Sendable {
    var delivery: Delivery
    var event: DeliveryEvent?
    var bytes: Int
  }

  /// The result of a load.
  struct Loaded: Sendable {
    var candidates: [Candidate] = []
    /// Deliveries that must wait for an earlier delivery of their lane and have no row by lane yet.
    var parked: [Delivery] = []
    /// Lanes of the request that must be examined again.
    var lanesLeft: [DeliveryLane] = []
    /// The place up to which all untried deliveries were found.
    var position: EventPlace?
    /// True if there may be more untried deliveries after `position`.
    var hasMore = false
    /// The due time of the first postponed delivery that was not loaded.
    var nextDue: Timestamp?
    var hasLaneRows = false
  }

  /// Loads due deliveries, untried deliveries and the next deliveries of lanes of one function.
  func load(_ request: LoadRequest) async throws -> Loaded {
    try await storage.read { snapshot in
      var loading = try Loading(request, snapshot)
      try loading.takeDue()
      try loading.takeUntried()
      try loading.takeLanes()
      return loading.loaded
    }
  }

  private struct Loading {
    private let request: LoadRequest
    private let snapshot: any StorageSnapshot
    private let prefix: [UInt8]
    private var reader: EventReader
    private var taken: Set<EventPlace> = []
    private var room: LaneCapacity
    /// Lanes with a delivery that this load parks; no later delivery of them may enter the window.
    private var closed: Set<DeliveryLane> = []
    /// The first row of each lane that was looked up.
    private var firsts: [DeliveryLane: EventPlace?] = [:]
    private var bytes = 0
    var loaded = Loaded()

    init(_ request: LoadRequest, _ snapshot: any StorageSnapshot) throws {
      self.request = request
      self.snapshot = snapshot
      prefix = DeliveryStore.prefix(request.function)
      reader = EventReader(snapshot)
      room = request.room
      loaded.position = request.position
      loaded.hasLaneRows = try first(DeliveryStore.lanes, prefix, in: snapshot) != nil
    }

    private func isFull(_ countMax: Int) -> Bool {
      loaded.candidates.count >= countMax
        || !loaded.candidates.isEmpty && bytes >= request.bytesMax
    }

    // MARK: Due deliveries

    mutating func takeDue() throws {
      var due: [EventPlace] = []
      var later: [(place: EventPlace, time: Timestamp)] = []
      try snapshot.scan(DeliveryStore.due, prefix: prefix) { key, _ in
        let time = DeliveryStore.time(key.dropFirst(prefix.count).prefix(8))
        let place = try DeliveryStore.place(key.suffix(16))
        if request.known.contains(place) { return true }
        guard time <= request.now else {
          later.append((place, time))
          return later.count < DeliveryStore.laterMax
        }
        guard due.count < request.countMax else {
          loaded.nextDue = time
          return false
        }
        due.append(place)
        return true
      }
      // Waits that began before the clock was set back are over.
      for (place, time) in later {
        if try pending(place)?.isDue(at: request.now) == true {
          due.append(place)
          if later.count == DeliveryStore.laterMax { loaded.nextDue = request.now }
        } else {
          loaded.nextDue = min(loaded.nextDue ?? time, time)
        }
      }
      for place in due {
        guard let delivery = try pending(place) else { continue }
        if try isBehind(delivery) {
          park(delivery)
        } else if isFull(request.countMax) {
          loaded.nextDue = min(loaded.nextDue ?? delivery.dueTime, delivery.dueTime)
        } else {
          try take(delivery)
        }
      }
    }

    // MARK: Untried deliveries

    /// Takes untried deliveries in the order of their events, until one finds no space.
    ///
    /// Deliveries beyond their lane's share are parked, so that other lanes can enter. Parking
    /// costs a row but no place in the window.
    mutating func takeUntried() throws {
      // Half of the capacity is for lanes that wait for their next deliveries.
      let countMax =
        request.lanes.isEmpty ? request.countMax : max(1, request.countMax / 2)
      var looked = 0
      repeat {
        let limit = min(Self.pageMax, DeliveryStore.looksMax - looked)
        let page = try untriedRows(limit: limit)
        looked += page.count
        for row in page {
          if let delivery = row.delivery, try !admit(delivery, countMax) {
            loaded.hasMore = true
            return
          }
          loaded.position = row.place
        }
        guard page.count == limit else { return }
      } while looked < DeliveryStore.looksMax
      // Rows that are skipped cost time as well.
      loaded.hasMore = true
    }

    /// Reads a page of rows after the position.
    ///
    /// The delivery is nil if it is in the window, was taken already, or must not be attempted yet.
    private func untriedRows(limit: Int) throws -> [(place: EventPlace, delivery: Delivery?)] {
      let from = loaded.position.map { prefix + DeliveryStore.placeKey($0) + [0] } ?? prefix
      var rows: [(place: EventPlace, delivery: Delivery?)] = []
      try snapshot.scan(
        DeliveryStore.pending,
        from: from,
        to: keyAfter(prefix: prefix),
        descending: false
      ) { key, value in
        let place = try DeliveryStore.place(key.suffix(16))
        let flags = try Delivery.flags(of: value.bytes)
        let mayEnter =
          flags.contains(.isPostponed)
          ? loaded.hasLaneRows && flags.contains(.hasLane) : true
        var delivery: Delivery?
        if mayEnter, !request.known.contains(place), !taken.contains(place) {
          delivery = try Delivery(DeliveryID(place, request.function), decoding: value.bytes)
        }
        rows.append((place, delivery))
        return rows.count < limit
      }
      return rows
    }

    /// Takes or parks an untried delivery; false if there is no space for it.
    private mutating func admit(_ delivery: Delivery, _ countMax: Int) throws -> Bool {
      if delivery.isPostponed {
        guard try isLeftByItsLane(delivery) else { return true }
      } else if let lane = delivery.lane {
        let first = loaded.hasLaneRows ? try firstOfLane(lane) : nil
        let place = delivery.id.place
        let isBehind = first.map { $0 < place } ?? false
        if isBehind || closed.contains(lane) || !room.takes(lane, place) {
          // After a start, most of these rows were parked before.
          let isParked = try first == place || isBehind && hasLaneRow(lane, place)
          if !isParked { park(delivery) }
          return true
        }
      }
      guard !isFull(countMax) else { return false }
      try take(delivery)
      return true
    }

    /// Indicates whether a parked and previously attempted delivery is first in its lane and due.
    ///
    /// Its lane normally loads it as soon as the delivery before it has settled, unless the server
    /// crashes in between.
    private mutating func isLeftByItsLane(_ delivery: Delivery) throws -> Bool {
      guard delivery.isDue(at: request.now), let lane = delivery.lane, !closed.contains(lane),
        try firstOfLane(lane) == delivery.id.place
      else { return false }
      return try snapshot.get(DeliveryStore.due, DeliveryStore.dueKey(prefix, delivery)) == nil
    }

    // MARK: Lanes

    /// Takes the next deliveries of lanes.
    ///
    /// Lanes without a delivery in the window get their first one, and then all lanes get more.
    mutating func takeLanes() throws {
      // At least one, so that other deliveries never block a lane without end.
      let countMax = max(request.countMax, loaded.candidates.count + 1)
      var open: [DeliveryLane] = []
      for lane in request.lanes {
        if room.count(lane) > 0, !closed.contains(lane) {
          open.append(lane)
        } else if isFull(countMax) || closed.contains(lane) {
          loaded.lanesLeft.append(lane)
        } else if try takeNext(of: lane, countMax: 1) > 0 {
          open.append(lane)
        }
      }
      for lane in open where !isFull(countMax) {
        _ = try takeNext(of: lane, countMax: countMax - loaded.candidates.count)
      }
    }

    /// Takes deliveries of a lane in order, while they are due and find space.
    private mutating func takeNext(of lane: DeliveryLane, countMax: Int) throws -> Int {
      var count = 0
      for place in try rows(of: lane) where !request.known.contains(place) && !taken.contains(place)
      {
        guard count < countMax, room.takes(lane, place), count == 0 || bytes < request.bytesMax,
          let delivery = try pending(place), delivery.isDue(at: request.now)
        else { break }
        // Before all earlier rows were read, they may include an earlier delivery of the lane.
        guard !loaded.hasMore || loaded.position.map({ place <= $0 }) ?? false else {
          loaded.lanesLeft.append(lane)
          break
        }
        try take(delivery)
        count += 1
      }
      return count
    }

    /// Returns the first places of a lane's rows.
    ///
    /// The number of places covers the deliveries in the window and as many more as may enter.
    private func rows(of lane: DeliveryLane) throws -> [EventPlace] {
      let prefix = DeliveryStore.laneKey(prefix, lane)
      var places: [EventPlace] = []
      try snapshot.scan(DeliveryStore.lanes, prefix: prefix) { key, _ in
        places.append(try DeliveryStore.place(key.suffix(16)))
        return places.count < room.count(lane) + room.share.laneMax
      }
      return places
    }

    // MARK: Single deliveries

    private mutating func take(_ delivery: Delivery) throws {
      let place = delivery.id.place
      guard !request.known.contains(place), taken.insert(place).inserted else { return }
      let found = try reader.event(at: place)
      let size = found?.bytes ?? 0
      loaded.candidates.append(Candidate(delivery: delivery, event: found?.event, bytes: size))
      bytes += size
      if let lane = delivery.lane { room.add(lane, place, bytes: size) }
    }

    private mutating func park(_ delivery: Delivery) {
      loaded.parked.append(delivery)
      if let lane = delivery.lane { closed.insert(lane) }
    }

    private func pending(_ place: EventPlace) throws -> Delivery? {
      try snapshot.get(DeliveryStore.pending, prefix + DeliveryStore.placeKey(place)).map {
        try Delivery(DeliveryID(place, request.function), decoding: $0.bytes)
      }
    }

    /// Indicates whether an earlier delivery of the lane is postponed or parked.
    private mutating func isBehind(_ delivery: Delivery) throws -> Bool {
      guard let lane = delivery.lane, let first = try firstOfLane(lane) else { return false }
      return first < delivery.id.place
    }

    private mutating func firstOfLane(_ lane: DeliveryLane) throws -> EventPlace? {
      if let known = firsts[lane] { return known }
      let key = try first(DeliveryStore.lanes, DeliveryStore.laneKey(prefix, lane), in: snapshot)
      let place = try key.map { try DeliveryStore.place($0.suffix(16)) }
      firsts[lane] = .some(place)
      return place
    }

    private func hasLaneRow(_ lane: DeliveryLane, _ place: EventPlace) throws -> Bool {
      let key = DeliveryStore.laneKey(prefix, lane) + DeliveryStore.placeKey(place)
      return try snapshot.get(DeliveryStore.lanes, key) != nil
    }

    private static let pageMax = 256
  }

  /// Returns the first delivery in the lane of each given delivery, if the lane has rows.
  func firstOfLanes(_ deliveries: [Delivery]) async throws -> [DeliveryID: EventPlace] {
    try await storage.read { snapshot in
      var found: [DeliveryID: EventPlace] = [:]
      for delivery in deliveries {
        guard let lane = delivery.lane else { continue }
        let key = Self.laneKey(Self.prefix(delivery.id.function), lane)
        found[delivery.id] = try Self.first(Self.lanes, key, in: snapshot).map {
          try Self.place($0.suffix(16))
        }
      }
      return found
    }
  }

  /// The maximum number of rows that one load skips.
  private static let looksMax = 4096
  /// The maximum number of deliveries that one load examines before they are due.
  ///
  /// Their waits may be over because the clock was set back.
  private static let laterMax = 64

  // MARK: Summaries

  /// A summary of one function's pending deliveries in storage.
  struct Summary: Sendable {
    var count = 0
    /// The number of deliveries that wait although no handler has failed.
    var unansweredCount = 0
    var nextDue: Timestamp?
    var hasLaneRows = false
  }

  /// Counts the pending deliveries, by function.
  ///
  /// Reads page by page, so that other reads can run in between.
  func summaries() async throws -> [String: Summary] {
    var summaries: [String: Summary] = [:]
    var next: [UInt8]? = []
    while let start = next {
      next = try await storage.read { snapshot in
        var looked = 0
        var last: [UInt8]?
        var function: (name: [UInt8], summary: Summary) = ([], Summary())
        func keep() {
          let name = String(decoding: function.name, as: UTF8.self)
          summaries[name, default: Summary()].count += function.summary.count
          summaries[name]?.unansweredCount += function.summary.unansweredCount
          function.summary = Summary()
        }
        try snapshot.scan(Self.pending, from: start, to: nil, descending: false) { key, value in
          if !key.starts(with: function.name) || key.count != function.name.count + 17 {
            if !function.name.isEmpty { keep() }
            function.name = Array(key.dropLast(17))
          }
          function.summary.count += 1
          if try Delivery.flags(of: value.bytes).contains(.isUnanswered) {
            function.summary.unansweredCount += 1
          }
          looked += 1
          last = looked == Self.pageMax ? key + [0] : nil
          return looked < Self.pageMax
        }
        if !function.name.isEmpty { keep() }
        return last
      }
    }
    for function in summaries.keys {
      let prefix = Self.prefix(function)
      let (due, lane) = try await storage.read { snapshot in
        (
          try Self.first(Self.due, prefix, in: snapshot),
          try Self.first(Self.lanes, prefix, in: snapshot)
        )
      }
      summaries[function]?.nextDue = due.map { Self.time($0.dropFirst(prefix.count).prefix(8)) }
      summaries[function]?.hasLaneRows = lane != nil
    }
    return summaries
  }

  /// The number of keys read at once.
  private static let pageMax = 10_000

  // MARK: Lists

  /// Returns the newest deliveries that `filter` accepts, newest first, at most `limit`.
  ///
  /// Examines no more than `scanMax` rows of each kind.
  func list(
    states: Set<Delivery.State>,
    function: String?,
    limit: Int,
    scanMax: Int,
    where filter: @Sendable (Delivery) -> Bool
  ) async throws -> [Delivery] {
    try await storage.read { snapshot in
      var newest = Newest(limit: limit)
      for keyspace in [Self.succeeded, Self.failed]
      where states.contains(where: { $0.isSettled && Self.keyspace(of: $0) == keyspace }) {
        var scanned = 0
        try snapshot.scan(keyspace, from: nil, to: nil, descending: true) { key, value in
          let place = try Self.place(key.prefix(16))
          guard newest.wants(place) else { return false }
          scanned += 1
          let name = String(decoding: key.dropFirst(16), as: UTF8.self)
          if function == nil || name == function {
            let delivery = try Delivery(DeliveryID(place, name), decoding: value.bytes)
            if states.contains(delivery.state), filter(delivery) { newest.add(delivery) }
          }
          return scanned < scanMax
        }
      }
      guard states.contains(.pending) else { return newest.sorted }
      var scanned = 0
      for name in try function.map({ [$0] }) ?? Self.functionsPending(in: snapshot) {
        try snapshot.scan(Self.pending, prefix: Self.prefix(name), descending: true) { key, value in
          let place = try Self.place(key.suffix(16))
          guard newest.wants(place) else { return false }
          scanned += 1
          let delivery = try Delivery(DeliveryID(place, name), decoding: value.bytes)
          if filter(delivery) { newest.add(delivery) }
          return scanned < scanMax
        }
      }
      return newest.sorted
    }
  }

  /// A collection that keeps the deliveries with the highest ids.
  private struct Newest {
    let limit: Int
    private var found: [Delivery] = []
    private var least: EventPlace?

    init(limit: Int) {
      self.limit = limit
    }

    /// Indicates whether a delivery of this event could be among the newest.
    func wants(_ place: EventPlace) -> Bool { limit > 0 && least.map { place >= $0 } ?? true }

    mutating func add(_ delivery: Delivery) {
      found.append(delivery)
      // The list is cut only now and then, so that sorting costs little per delivery.
      guard found.count >= limit,
        found.count - limit >= limit || found.count - limit >= 1000
          || least == nil
      else { return }
      found = sorted
      least = found.last?.id.place
    }

    var sorted: [Delivery] { Array(found.sorted { $0.id > $1.id }.prefix(limit)) }
  }
}
