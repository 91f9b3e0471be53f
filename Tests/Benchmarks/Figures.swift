import Synchronization

/// The server or baseline that a figure belongs to.
enum Subject: String, Sendable {
  case hearth = "Hearth"
  case official = "official emulator"
  case bareNIO = "bare NIO echo"
  case python = "Python functions"
  case postgreSQL = "PostgreSQL"
  case numPy = "NumPy scan"
  case withoutFaults = "without faults"
  case withoutReaders = "without readers"
  case withoutRules = "without rules"
  /// The requests of Psst's services, sent directly as the administrator.
  case rawREST = "raw REST as admin"
}

/// An operation whose processor use is measured.
enum Work: Hashable, Sendable {
  /// An event from its write to its outcome, at about a hundred a second.
  case pacedEvent
  /// An event that was queued before the start, without its write.
  case queuedEvent
  /// A call from its request to its response, with this many concurrent clients.
  case call(clients: Int)
  /// A request checked by security rules, with 16 clients.
  case ruled(RuledRequest)
  /// A snapshot for one of 32 listeners that are subject to security rules.
  case ruledSnapshot

  var title: String {
    switch self {
    case .pacedEvent: "event with its write"
    case .queuedEvent: "queued event"
    case .ruled(let request): "ruled \(request.rawValue)"
    case .ruledSnapshot: "ruled snapshot"
    case .call(let clients): "call, \(clients == 1 ? "1 client" : "\(clients) clients")"
    }
  }
}

/// The size of the collections that queries search.
enum QuerySize: Hashable, Sendable {
  case some, eightTimes
}

/// A measured quantity.
enum Metric: Hashable, Sendable {
  case startMilliseconds
  case createsPerSecond(clients: Int)
  case durableCreatesPerSecond(clients: Int)
  case getsPerSecond(clients: Int)
  case commitMilliseconds(percentile: Int)
  case longReadsPerSecond
  case queryMilliseconds(QueryShape, QuerySize)
  case nearestMilliseconds(isFiltered: Bool)
  case nearestMegabytes
  case snapshotMilliseconds(listeners: Int, areDifferent: Bool, percentile: Int)
  case webSnapshotMilliseconds(pages: Int, percentile: Int)
  case documentsSentPerChange
  case ruleDecisionsPerSecond(RuledRequest)
  case ruledPerSecond(RuledRequest)
  case ruledSnapshotMilliseconds(percentile: Int)
  case contactsMilliseconds(ContactRequest, percentile: Int)
  case firstLookUpMilliseconds
  case contactsMegabytes
  case idleListenersMegabytes
  case firstSnapshotMilliseconds
  case resumptionMilliseconds
  case functionStartMilliseconds(percentile: Int)
  case healthyStartMilliseconds(percentile: Int)
  case eventsPerSecond
  case drainedPerSecond
  case coldStartMilliseconds
  case callablesPerSecond(clients: Int)
  case callableMilliseconds99(clients: Int)
  case processorMicroseconds(Work)
  case contextSwitches(Work)
  case searchableMilliseconds(percentile: Int)
  case signUpsPerSecond(clients: Int)
  case signInsPerSecond(clients: Int)
  case tokenChecksPerSecond(clients: Int)
  case importedUsersPerSecond
  case usersStartMilliseconds
  case usersMegabytes
  case vectorsPerSecond
  case vectorQueryMilliseconds(isFiltered: Bool, overHTTP: Bool)
  case vectorRecall(isFiltered: Bool)
  case vectorsMegabytes
  case vectorsStartMilliseconds
  case vectorsReadyMilliseconds
  case millionMegabytesOnDisk
  case millionMegabytesInMemory
  case millionStartMilliseconds
  case exportSeconds
  case importSeconds
  case importMegabytes
  case idleMegabytes
  case loadedMegabytes
  case workerMegabytes

  var title: String {
    switch self {
    case .startMilliseconds: "start → first commit, ms"
    case .createsPerSecond(let clients): "creates/s, ephemeral, \(Self.text(clients))"
    case .durableCreatesPerSecond(let clients): "creates/s, durable, \(Self.text(clients))"
    case .getsPerSecond(let clients): "gets/s, \(Self.text(clients))"
    case .commitMilliseconds(let percentile): "commit p\(percentile) beside 8 long reads, ms"
    case .queryMilliseconds(let shape, .some): "\(shape.rawValue), ms"
    case .queryMilliseconds(_, .eightTimes): "… of eight times the documents, ms"
    case .nearestMilliseconds(let isFiltered):
      "findNearest \(isFiltered ? "of 1 %" : "of 100 000"), ms"
    case .nearestMegabytes: "memory after findNearest, MB"
    case .longReadsPerSecond: "reads/s of 10 000 documents, 8 clients"
    case .snapshotMilliseconds(let listeners, let areDifferent, let percentile):
      "snapshot p\(percentile), \(listeners) "
        + (areDifferent ? "queries, ms" : listeners == 1 ? "listener, ms" : "listeners, ms")
    case .webSnapshotMilliseconds(let pages, let percentile):
      "snapshot p\(percentile), \(pages) web \(pages == 1 ? "page" : "pages"), ms"
    case .ruleDecisionsPerSecond(let request): "rules' decisions/s, \(request.rawValue)"
    case .ruledPerSecond(let request): "ruled \(request.rawValue) requests/s, 16 clients"
    case .ruledSnapshotMilliseconds(let percentile): "ruled snapshot p\(percentile), ms"
    case .contactsMilliseconds(let request, let percentile): "\(request.title) p\(percentile), ms"
    case .firstLookUpMilliseconds: "user by address, without index, ms"
    case .contactsMegabytes: "memory with users and contacts, MB"
    case .documentsSentPerChange: "documents sent per one changed"
    case .idleListenersMegabytes: "memory of 10 000 idle listeners, MB"
    case .firstSnapshotMilliseconds: "first snapshot of 10 000 documents, ms"
    case .resumptionMilliseconds: "resumption, 1 of 100 000 changed, ms"
    case .functionStartMilliseconds(let percentile): "write → function start p\(percentile), ms"
    case .healthyStartMilliseconds(let percentile): "… p\(percentile) of 40 beside 2 faulty, ms"
    case .eventsPerSecond: "events/s, write → function start"
    case .drainedPerSecond: "events/s, of 100 000 queued"
    case .coldStartMilliseconds: "worker start → first answer, ms"
    case .callablesPerSecond(let clients): "callables/s, \(Self.text(clients))"
    case .callableMilliseconds99(let clients): "callable p99, \(Self.text(clients)), ms"
    case .processorMicroseconds(let work): "processor µs a \(work.title)"
    case .contextSwitches(let work): "context switches a \(work.title)"
    case .searchableMilliseconds(let percentile): "message → found p\(percentile), ms"
    case .signUpsPerSecond(let clients): "sign-ups/s, durable, \(Self.text(clients))"
    case .signInsPerSecond(let clients): "sign-ins/s, durable, \(Self.text(clients))"
    case .tokenChecksPerSecond(let clients): "checked tokens/s, \(Self.text(clients))"
    case .importedUsersPerSecond: "users imported/s, by thousands"
    case .usersStartMilliseconds: "start with 100 000 users → sign-in, ms"
    case .usersMegabytes: "memory with 100 000 users, MB"
    case .vectorsPerSecond: "vectors written/s, 4 clients"
    case .vectorQueryMilliseconds(let isFiltered, let overHTTP):
      "query \(isFiltered ? "of 1 %" : "of all"), \(overHTTP ? "HTTP" : "engine"), ms"
    case .vectorRecall(let isFiltered): "recall@10 \(isFiltered ? "of 1 %" : "of all")"
    case .vectorsMegabytes: "memory with vectors, MB"
    case .vectorsStartMilliseconds: "start with vectors → commit, ms"
    case .vectorsReadyMilliseconds: "start with vectors → query, ms"
    case .millionMegabytesOnDisk: "disk for a million documents, MB"
    case .millionMegabytesInMemory: "memory after writing them, MB"
    case .millionStartMilliseconds: "start with them → first commit, ms"
    case .exportSeconds: "export of a gigabyte, s"
    case .importSeconds: "start that imports it, s"
    case .importMegabytes: "most memory while importing, MB"
    case .idleMegabytes: "memory idle, MB"
    case .loadedMegabytes: "memory after the load, MB"
    case .workerMegabytes: "memory of an idle worker, MB"
    }
  }

  /// True if smaller values are better.
  var isLowerBetter: Bool {
    switch self {
    case .startMilliseconds, .commitMilliseconds, .queryMilliseconds, .functionStartMilliseconds,
      .nearestMilliseconds, .nearestMegabytes, .snapshotMilliseconds, .webSnapshotMilliseconds,
      .documentsSentPerChange, .ruledSnapshotMilliseconds, .contactsMilliseconds,
      .firstLookUpMilliseconds, .contactsMegabytes, .idleListenersMegabytes,
      .firstSnapshotMilliseconds, .resumptionMilliseconds,
      .healthyStartMilliseconds,
      .processorMicroseconds, .contextSwitches, .searchableMilliseconds,
      .vectorQueryMilliseconds, .vectorsMegabytes, .vectorsStartMilliseconds,
      .vectorsReadyMilliseconds, .coldStartMilliseconds, .callableMilliseconds99,
      .millionMegabytesOnDisk, .millionMegabytesInMemory, .millionStartMilliseconds,
      .exportSeconds, .importSeconds, .importMegabytes, .idleMegabytes, .loadedMegabytes,
      .workerMegabytes, .usersStartMilliseconds,
      .usersMegabytes:
      true
    default: false
    }
  }

  private static func text(_ clients: Int) -> String {
    clients == 1 ? "1 client" : "\(clients) clients"
  }
}

/// The figures of a run; each is printed when it is recorded.
final class Figures: Sendable {
  private struct Key: Hashable {
    var subject: Subject
    var metric: Metric
  }

  private let values = Mutex<[Key: Double]>([:])
  private let missing = Mutex<Set<Subject>>([])

  /// Records a value and prints its line.
  func record(_ metric: Metric, of subject: Subject = .hearth, _ value: Double, note: String = "") {
    values.withLock { $0[Key(subject: subject, metric: metric)] = value }
    print(
      padded(metric.title, 36) + padded(subject.rawValue, 19) + leftPadded(Self.text(value), 10)
        + (note.isEmpty ? "" : "   " + note)
    )
  }

  /// Prints a line for a part that could not be measured.
  func recordMissing(_ part: String, of subject: Subject, because error: any Error) {
    _ = missing.withLock { $0.insert(subject) }
    print(
      padded(part, 36) + padded(subject.rawValue, 19) + leftPadded("missing", 10) + "   \(error)"
    )
  }

  /// True if a part of this subject could not be measured.
  func isMissing(_ subject: Subject) -> Bool { missing.withLock { $0.contains(subject) } }

  /// Records the rate and the latencies of a load.
  func record(_ metric: Metric, of subject: Subject = .hearth, _ measurement: Measurement) {
    let times = [0.5, 0.99].map { Self.text(measurement.milliseconds($0)) }
    record(
      metric,
      of: subject,
      measurement.perSecond,
      note: "p50 \(times[0]) ms, p99 \(times[1]) ms"
    )
    if case .callablesPerSecond(let clients) = metric {
      let key = Key(subject: subject, metric: .callableMilliseconds99(clients: clients))
      values.withLock { $0[key] = measurement.milliseconds(0.99) }
    }
  }

  /// Records the processor use for each of `count` operations.
  func record(_ use: ProcessorUse?, for work: Work, count: Int, of subject: Subject = .hearth) {
    guard let use else { return print("Processor use is reported by /proc only: skipped.") }
    let count = Double(max(count, 1))
    record(.processorMicroseconds(work), of: subject, Double(use.nanoseconds) / 1e3 / count)
    record(.contextSwitches(work), of: subject, Double(use.contextSwitches) / count)
  }

  subscript(_ metric: Metric, _ subject: Subject) -> Double? {
    values.withLock { $0[Key(subject: subject, metric: metric)] }
  }

  /// Formats a number with a sensible number of digits.
  static func text(_ value: Double) -> String {
    let scale = value < 10 ? 100.0 : value < 100 ? 10 : 1
    let rounded = (value * scale).rounded() / scale
    guard scale == 1 else { return "\(rounded)" }
    let digits = "\(Int(rounded))"
    guard digits.count > 4 else { return digits }
    return digits.dropLast(3) + " " + digits.suffix(3)
  }
}

/// The table at the end of a run: Hearth's value, the other server's, their ratio and the target.
struct Comparison {
  let figures: Figures

  private enum Aim {
    case atMost(Double)
    case atLeast(Double)
    /// At least this many times as good as the other server.
    case times(Double)
  }

  private struct Row {
    var metric: Metric
    var peer: Subject?
    var peerMetric: Metric?
    var aim: Aim?
  }

  private static let rows: [Row] =
    [Row(metric: .startMilliseconds, peer: .official, aim: .atMost(100))]
    + [1, 16].map { Row(metric: .createsPerSecond(clients: $0), peer: .official) }
    + [1, 16].map {
      Row(
        metric: .durableCreatesPerSecond(clients: $0),
        peer: .official,
        peerMetric: .createsPerSecond(clients: $0),
        aim: $0 == 16 ? .times(1.5) : nil
      )
    }
    + [1, 16].map {
      Row(
        metric: .durableCreatesPerSecond(clients: $0),
        peer: .postgreSQL,
        peerMetric: .durableCreatesPerSecond(clients: $0)
      )
    }
    + [(1, 2.0), (16, 3.0)].map {
      Row(metric: .getsPerSecond(clients: $0.0), peer: .official, aim: .times($0.1))
    }
    + [1, 16].map { Row(metric: .getsPerSecond(clients: $0), peer: .postgreSQL) }
    + QueryShape.allCases.flatMap { shape in
      [
        Row(metric: .queryMilliseconds(shape, .some), peer: .official, aim: .times(10)),
        Row(
          metric: .queryMilliseconds(shape, .eightTimes),
          peer: .hearth,
          peerMetric: .queryMilliseconds(shape, .some),
          aim: shape == .count || shape == .offset ? nil : .times(1 / 1.15)
        ),
      ]
    }
    + [
      Row(metric: .commitMilliseconds(percentile: 50), peer: .withoutReaders),
      Row(metric: .commitMilliseconds(percentile: 99), peer: .withoutReaders, aim: .atMost(10)),
      Row(metric: .longReadsPerSecond),
    ]
    + [false, true].map {
      Row(metric: .nearestMilliseconds(isFiltered: $0), peer: .numPy)
    }
    + [Row(metric: .nearestMegabytes)]
    + [1, 32, 128, 1000].flatMap { listeners in
      [false, true].flatMap { areDifferent in
        [50, 99].map { percentile in
          Row(
            metric: .snapshotMilliseconds(
              listeners: listeners,
              areDifferent: areDifferent,
              percentile: percentile
            ),
            peer: .official,
            aim: .times(10)
          )
        }
      }
    }
    + [1, 32, 128].flatMap { pages in
      [50, 99].map { percentile in
        Row(
          metric: .webSnapshotMilliseconds(pages: pages, percentile: percentile),
          peer: .official,
          aim: .times(10)
        )
      }
    }
    + [
      Row(metric: .documentsSentPerChange, peer: .official, aim: .atMost(1)),
      Row(metric: .idleListenersMegabytes),
      Row(metric: .firstSnapshotMilliseconds, peer: .official),
      Row(metric: .resumptionMilliseconds),
    ]
    + contactRows
    + RuledRequest.allCases.flatMap { request in
      [
        Row(metric: .ruleDecisionsPerSecond(request)),
        Row(metric: .ruledPerSecond(request), peer: .official, aim: .times(2)),
        underRules(.ruled(request)),
      ]
    }
    + [50, 99].map {
      Row(metric: .ruledSnapshotMilliseconds(percentile: $0), peer: .withoutRules)
    }
    + [
      underRules(.ruledSnapshot),
      Row(metric: .functionStartMilliseconds(percentile: 50), aim: .atMost(0.7)),
      Row(metric: .functionStartMilliseconds(percentile: 99), aim: .atMost(3)),
      Row(metric: .eventsPerSecond, aim: .atLeast(5000)),
      Row(metric: .drainedPerSecond, aim: .atLeast(10_000)),
      Row(metric: .processorMicroseconds(.pacedEvent)),
      Row(metric: .contextSwitches(.pacedEvent)),
      Row(metric: .processorMicroseconds(.queuedEvent)),
      Row(metric: .contextSwitches(.queuedEvent)),
      Row(metric: .healthyStartMilliseconds(percentile: 50), peer: .withoutFaults),
      Row(
        metric: .healthyStartMilliseconds(percentile: 99),
        peer: .withoutFaults,
        aim: .times(1 / 1.5)
      ),
      Row(metric: .coldStartMilliseconds, peer: .python, aim: .atMost(30)),
    ]
    + [1, 16, 64].map {
      Row(metric: .callablesPerSecond(clients: $0), peer: .bareNIO, aim: .times(0.4))
    }
    + [1, 16, 64].map {
      Row(metric: .callablesPerSecond(clients: $0), peer: .python, aim: .times(20))
    }
    + [1, 16, 64].map {
      Row(metric: .callableMilliseconds99(clients: $0), peer: .python, aim: .times(3))
    }
    + [1, 16, 64].flatMap {
      [
        Row(metric: .processorMicroseconds(.call(clients: $0)), peer: .bareNIO),
        Row(metric: .contextSwitches(.call(clients: $0)), peer: .bareNIO),
      ]
    }
    + [
      Row(metric: .searchableMilliseconds(percentile: 50)),
      Row(metric: .searchableMilliseconds(percentile: 99)),
      Row(metric: .vectorsPerSecond),
    ]
    + [(false, true, nil), (false, false, 5.0), (true, true, 1.0), (true, false, 0.4)].map {
      (isFiltered: Bool, overHTTP: Bool, most: Double?) in
      Row(
        metric: .vectorQueryMilliseconds(isFiltered: isFiltered, overHTTP: overHTTP),
        peer: .numPy,
        peerMetric: .vectorQueryMilliseconds(isFiltered: isFiltered, overHTTP: false),
        aim: most.map { .atMost($0) }
      )
    }
    + [
      Row(metric: .vectorRecall(isFiltered: false), aim: .atLeast(1)),
      Row(metric: .vectorRecall(isFiltered: true), aim: .atLeast(1)),
      Row(metric: .vectorsMegabytes),
      Row(metric: .vectorsStartMilliseconds, aim: .atMost(100)),
      Row(metric: .vectorsReadyMilliseconds),
      Row(metric: .millionMegabytesOnDisk),
      Row(metric: .millionMegabytesInMemory),
      Row(metric: .millionStartMilliseconds, aim: .atMost(1000)),
      Row(metric: .exportSeconds),
      Row(metric: .importSeconds, peer: .official),
      Row(metric: .importMegabytes, peer: .official),
      Row(metric: .idleMegabytes, peer: .official, aim: .atMost(40)),
      Row(metric: .loadedMegabytes, peer: .official),
      Row(metric: .workerMegabytes),
    ]

  /// A row for the processor use under rules, which should be less than ten percent higher.
  private static func underRules(_ work: Work) -> Row {
    Row(metric: .processorMicroseconds(work), peer: .withoutRules, aim: .times(1 / 1.1))
  }

  /// The rows for Psst's contacts, whose aim is a tenth of the time that Psst's documents allow.
  private static let contactRows: [Row] =
    ContactRequest.allCases.flatMap { request in
      [50, 99].map { percentile in
        Row(
          metric: .contactsMilliseconds(request, percentile: percentile),
          peer: request == .search ? nil : .rawREST,
          aim: .atMost(request.millisecondsMax / 10)
        )
      }
    }
    + [
      Row(
        metric: .firstLookUpMilliseconds,
        aim: .atMost(ContactRequest.lookUp.millisecondsMax)
      ),
      Row(metric: .contactsMegabytes),
    ]

  /// Prints the rows for which there are measurements.
  func printTable() {
    let heads = ["", "HEARTH", "NEIGHBOUR", "", "TIMES AS GOOD", "AIM", ""]
    let lines = [heads] + Self.rows.compactMap(cells)
    let widths = heads.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    for line in lines {
      let cells = line.indices.map { column in
        [1, 2, 4].contains(column)
          ? leftPadded(line[column], widths[column]) : padded(line[column], widths[column])
      }
      print(cells.joined(separator: "  "))
    }
  }

  private func cells(_ row: Row) -> [String]? {
    guard let ours = figures[row.metric, .hearth] else { return nil }
    let peer = row.peer.flatMap { figures[row.peerMetric ?? row.metric, $0] }
    let ratio = peer.map { row.metric.isLowerBetter ? $0 / ours : ours / $0 }
    var aim = ""
    var verdict = ""
    switch row.aim {
    case .atMost(let most):
      aim = "≤ \(Figures.text(most))"
      verdict = ours <= most ? "met" : "missed"
    case .atLeast(let least):
      aim = "≥ \(Figures.text(least))"
      verdict = ours >= least ? "met" : "missed"
    case .times(let times):
      aim = "≥ \(Figures.text(times)) ×"
      if let ratio { verdict = ratio >= times ? "met" : "missed" }
    case nil:
      break
    }
    return [
      row.metric.title, Figures.text(ours), peer.map(Figures.text) ?? "–",
      peer == nil ? "" : row.peer?.rawValue ?? "", ratio.map { Figures.text($0) + " ×" } ?? "–",
      aim, verdict,
    ]
  }
}

private func padded(_ text: String, _ width: Int) -> String {
  text + String(repeating: " ", count: max(0, width - text.count))
}

private func leftPadded(_ text: String, _ width: Int) -> String {
  String(repeating: " ", count: max(0, width - text.count)) + text
}
