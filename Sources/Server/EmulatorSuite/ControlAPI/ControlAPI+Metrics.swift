import AuthEmulator
import DatabaseTree
import DocumentStore
import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import SQLiteStorage
import StorageEngine
import TriggerDelivery
import WorkerPool

/// Metrics of the suite, for people and for Prometheus.
extension ControlAPI {
  /// Handles `GET /hearth/v1/functions/stats`: returns the figures of each function, by name.
  func functionStats() -> [FunctionStats] { functionStats(fleet.figures) }

  private func functionStats(_ figures: [String: FunctionFigures]) -> [FunctionStats] {
    let deliveries = deliveries.administration.figures
    let statuses = Dictionary(fleet.statuses().map { ($0.name, $0) }) { first, _ in first }
    let now = time.now
    return Set(figures.keys).union(deliveries.keys).union(statuses.keys).sorted().map { name in
      let done = figures[name] ?? FunctionFigures()
      let events = deliveries[name] ?? DeliveryFigures()
      return FunctionStats(
        name: name,
        invocations: done.count,
        outcomes: done.outcomes,
        secondsTotal: done.secondsTotal,
        p50Seconds: done.seconds(0.5).flatMap { $0.isFinite ? $0 : nil },
        p99Seconds: done.seconds(0.99).flatMap { $0.isFinite ? $0 : nil },
        workers: statuses[name]?.workers ?? 0,
        running: statuses[name]?.running ?? 0,
        waiting: statuses[name]?.waiting ?? 0,
        workerStarts: done.workerStarts,
        workerCrashes: done.workerCrashes,
        pending: events.pending,
        oldestSeconds: events.oldest.map { max(0, now.duration(since: $0) / .seconds(1)) },
        deliveries: Dictionary(
          uniqueKeysWithValues: events.ends.map { ($0.key.rawValue, $0.value) }
            // Deliveries stopped by loop protection are dead without an attempt.
            + (events.stopped > 0 ? [("stopped", events.stopped)] : [])
        ),
        waits: events.pending > 0 ? events.holdUp?.text : nil,
        waitReason: events.pending > 0 ? events.holdUp?.code : nil,
        shortage: statuses[name]?.shortage?.message
      )
    }
  }

  /// Handles `GET /metrics`, for Prometheus.
  ///
  /// Requires no token, as scrapers expect. It exposes only function names and numbers.
  func metrics() -> Response {
    var text = PrometheusText()
    // Read only once, so that all numbers of a response agree.
    let figures = fleet.figures
    let stats = functionStats(figures)
    addInvocations(stats, figures, to: &text)
    addDeliveries(stats, to: &text)
    addTriggers(triggersDescription(), stats, to: &text)
    addAuth(to: &text)
    addDatabases(to: &text)
    addProcess(to: &text)
    return Response(
      status: .ok,
      headers: [.contentType: PrometheusText.mediaType],
      body: .whole(ByteBuffer(string: text.text))
    )
  }

  private func addInvocations(
    _ stats: [FunctionStats],
    _ figures: [String: FunctionFigures],
    to text: inout PrometheusText
  ) {
    text.add(
      "hearth_invocations_total",
      .counter,
      "Invocations that have ended, by outcome.",
      stats.flatMap { function in
        function.outcomes.sorted { $0.key < $1.key }.map {
          .init(Double($0.value), ("function", function.name), ("outcome", $0.key))
        }
      }
    )
    text.addHistogram(
      "hearth_invocation_duration_seconds",
      "Time from an invocation's arrival at the pool of workers to the end of its reply.",
      bounds: FunctionFigures.timeBounds,
      label: "function",
      figures.sorted { $0.key < $1.key }.map {
        ($0.key, $0.value.times, $0.value.secondsTotal)
      }
    )
    for (name, kind, help, value) in [
      ("hearth_invocations_running", .gauge, "Invocations that a worker runs.", \.running),
      ("hearth_invocations_waiting", .gauge, "Invocations that wait for a worker.", \.waiting),
      ("hearth_workers", .gauge, "Worker processes.", \.workers),
      ("hearth_worker_starts_total", .counter, "Workers that were started.", \.workerStarts),
      ("hearth_worker_crashes_total", .counter, "Workers that ended unasked.", \.workerCrashes),
      ("hearth_deliveries_pending", .gauge, "Deliveries that are not settled.", \.pending),
    ] as [(String, PrometheusText.Kind, String, KeyPath<FunctionStats, Int>)] {
      text.add(
        name,
        kind,
        help,
        stats.map { .init(Double($0[keyPath: value]), ("function", $0.name)) }
      )
    }
  }

  private func addDeliveries(_ stats: [FunctionStats], to text: inout PrometheusText) {
    text.add(
      "hearth_deliveries_oldest_seconds",
      .gauge,
      "Age of the oldest event that runs or could run now.",
      stats.compactMap { function in
        function.oldestSeconds.map { .init($0, ("function", function.name)) }
      }
    )
    text.add(
      "hearth_delivery_attempts_total",
      .counter,
      "Attempts of deliveries that have ended, by the state that they left.",
      stats.flatMap { function in
        function.deliveries.sorted { $0.key < $1.key }.map {
          .init(Double($0.value), ("function", function.name), ("state", $0.key))
        }
      }
    )
  }

  private func addAuth(to text: inout PrometheusText) {
    let requests = auth.figures.requests.sorted {
      ($0.key.method, $0.key.isRefused ? 1 : 0) < ($1.key.method, $1.key.isRefused ? 1 : 0)
    }
    text.add(
      "hearth_auth_requests_total",
      .counter,
      "Requests to Auth, by method and outcome.",
      requests.map { entry in
        .init(
          Double(entry.value),
          ("method", entry.key.method),
          ("outcome", entry.key.isRefused ? "refused" : "ok")
        )
      }
    )
  }

  private func addDatabases(to text: inout PrometheusText) {
    let counts = database.counts.sorted { $0.key < $1.key }
    text.add(
      "hearth_database_clients",
      .gauge,
      "Connected clients of the Realtime Database, by instance.",
      counts.map { .init(Double($0.value.sessions), ("instance", $0.key)) }
    )
    text.add(
      "hearth_database_listeners",
      .gauge,
      "Listeners of these clients.",
      counts.map { .init(Double($0.value.listeners), ("instance", $0.key)) }
    )
  }

  private func addTriggers(
    _ triggers: TriggersDescription,
    _ stats: [FunctionStats],
    to text: inout PrometheusText
  ) {
    text.add(
      "hearth_deliveries_held",
      .gauge,
      "Deliveries of functions all of whose deliveries wait until somebody acts, by the reason.",
      stats.compactMap { function in
        function.waitReason.map {
          .init(Double(function.pending), ("function", function.name), ("reason", $0))
        }
      }
    )
    text.add(
      "hearth_triggers_enabled",
      .gauge,
      "1 while events reach functions, 0 while the hub's switch is off.",
      [.init(triggers.isEnabled ? 1 : 0)]
    )
    text.add(
      "hearth_events_skipped_total",
      .counter,
      "Events that reached no function because triggers were off.",
      [.init(Double(triggers.eventsSkipped))]
    )
    text.add(
      "hearth_events_before_deployment",
      .gauge,
      "Events that wait for the first deployment.",
      [.init(Double(triggers.eventsBeforeDeployment))]
    )
  }

  /// The size of the database in the data folder; nil for a database in memory.
  private var bytesOnDisk: Int? {
    let sizes = ["", "-wal"].map { SQLiteStore.fileName + $0 }.compactMap { name in
      // After a checkpoint, the write-ahead log may not exist.
      (try? FileManager.default.attributesOfItem(atPath: "\(dataFolder)/\(name)"))?[.size] as? Int
    }
    return sizes.isEmpty ? nil : sizes.reduce(0, +)
  }

  private func addProcess(to text: inout PrometheusText) {
    text.add(
      "hearth_connections",
      .gauge,
      "Open connections of all ports.",
      [.init(Double(roster.count))]
    )
    text.add(
      "hearth_connections_max",
      .gauge,
      "Connections that there may be.",
      [.init(Double(roster.max))]
    )
    let listeners = documents.listenerCounts
    text.add(
      "hearth_listeners",
      .gauge,
      "Open Listen streams.",
      [.init(Double(listeners.sessions))]
    )
    text.add(
      "hearth_listen_targets",
      .gauge,
      "Different queries and documents that they listen to.",
      [.init(Double(listeners.views))]
    )
    text.add(
      "hearth_commits_total",
      .counter,
      "Commits since the data folder was made.",
      [.init(Double(storage.sequence))]
    )
    text.add(
      "hearth_storage_bytes",
      .gauge,
      "Size of the database on disk with its log.",
      bytesOnDisk.map { [.init(Double($0))] } ?? []
    )
    text.add(
      "process_start_time_seconds",
      .gauge,
      "Start of the server in seconds since 1970.",
      ServerProcess.startTime.map { [.init($0)] } ?? []
    )
    text.add(
      "process_resident_memory_bytes",
      .gauge,
      "Resident memory of the server.",
      ServerProcess.residentBytes.map { [.init(Double($0))] } ?? []
    )
    text.add(
      "process_cpu_seconds_total",
      .counter,
      "Processor time of the server.",
      [.init(ServerProcess.processorSeconds)]
    )
    text.add(
      "process_open_fds",
      .gauge,
      "Open files of the server.",
      ServerProcess.openFiles.map { [.init(Double($0))] } ?? []
    )
  }
}
