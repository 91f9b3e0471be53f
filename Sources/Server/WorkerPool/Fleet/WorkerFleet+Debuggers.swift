import Logging
package import Manifests
import StatusCodes
import Synchronization

/// A process that a developer has started in a debugger to run functions temporarily.
package struct DebuggerWorker: Sendable {
  package var pid: Int32
  /// The loopback port on which the process listens.
  package var port: Int
  /// The functions that the process runs from now on.
  package var endpoints: [String: FunctionEndpoint]

  package init(pid: Int32, port: Int, endpoints: [String: FunctionEndpoint]) {
    self.pid = pid
    self.port = port
    self.endpoints = endpoints
  }
}

/// A registered debugger process and the function versions that it runs.
struct Attachment: Sendable {
  var id: String
  var worker: DebuggerWorker
  var versions: [String: FunctionVersion]
  /// True if the process takes no new invocations.
  var isLeaving = false
}

extension WorkerFleet {
  /// The time limit for a debugged process, which its user may pause for any time.
  static let debuggerPatience = Duration.seconds(10 * 365 * 86_400)

  /// The maximum duration of a release, equal to the shutdown time of a Cloud Run container.
  private static let releaseTimeMax = Duration.seconds(9)
  private static let releaseWait = Duration.milliseconds(20)

  /// Routes functions to a debugged process once it answers.
  ///
  /// From then on it runs them in place of the deployed workers, without deadlines, until `detach`
  /// or `release`. If several processes run the same function, the last one attached gets it.
  /// Throws if the attachment ends before the process has answered, for example because of
  /// `detach`.
  package func attach(_ worker: DebuggerWorker, id: String) async throws {
    let versions = worker.endpoints.map { name, endpoint in
      FunctionVersion(
        DeployedFunction(
          name: name,
          endpoint: endpoint,
          executable: "",
          environment: [:],
          deploymentID: id
        ),
        in: context,
        debugger: worker
      )
    }
    let named = Dictionary(uniqueKeysWithValues: versions.map { ($0.function.name, $0) })
    let isStopping = state.withLock { state in
      if !state.isStopping {
        state.attachments.append(
          Attachment(id: id, worker: worker, versions: named, isLeaving: true)
        )
      }
      return state.isStopping
    }
    guard !isStopping else {
      for version in versions { version.retire(successor: nil) }
      throw StatusError(.unavailable, "The server is stopping.")
    }
    for version in versions { version.warmUp() }
    for version in versions { try await version.firstWorkerReady() }
    state.withLock { state in
      for index in state.attachments.indices where state.attachments[index].id == id {
        state.attachments[index].isLeaving = false
      }
    }
    for name in worker.endpoints.keys.sorted() {
      notify("\(name) now runs in process \(worker.pid) (debugger).", of: name)
    }
  }

  /// Routes a debugged process's functions back to where they ran before.
  ///
  /// Its running invocations may finish; waiting ones move on. Returns when the process runs
  /// nothing anymore, or after `releaseTimeMax`.
  package func release(_ id: String) async {
    let attachment = state.withLock { state -> Attachment? in
      guard let index = state.attachments.firstIndex(where: { $0.id == id }),
        !state.attachments[index].isLeaving
      else { return nil }
      state.attachments[index].isLeaving = true
      return state.attachments[index]
    }
    guard let attachment else { return }
    release(attachment)
    let end = context.time.now() + Self.releaseTimeMax
    while attachment.versions.values.contains(where: { $0.status.running > 0 }) {
      let now = context.time.now()
      guard now < end else { return }
      do { try await context.time.sleep(now + Self.releaseWait) } catch { return }
    }
  }

  /// Ends an attachment whose process has exited.
  ///
  /// Its running invocations fail, and its functions are routed back.
  package func detach(_ id: String) {
    let attachment = state.withLock { state -> Attachment? in
      guard let index = state.attachments.firstIndex(where: { $0.id == id }) else { return nil }
      return state.attachments.remove(at: index)
    }
    guard let attachment else { return }
    if !attachment.isLeaving { release(attachment) }
    for version in attachment.versions.values {
      version.retire(successor: nil)
      version.endWorkers(saying: "its debugger's process \(attachment.worker.pid) has gone")
    }
  }

  /// True if a deployment is being served.
  package var isDeployed: Bool { state.withLock { !$0.deployed.isEmpty } }

  /// The functions that currently run in debugged processes.
  package var debuggedEndpoints: [String: FunctionEndpoint] {
    state.withLock { state in
      state.current.values.reduce(into: [:]) { endpoints, version in
        if version.debugger != nil { endpoints[version.function.name] = version.function.endpoint }
      }
    }
  }

  /// The process IDs of debugged processes, by the functions that they run.
  package var debuggers: [String: Int32] {
    state.withLock { state in
      state.current.compactMapValues { $0.debugger?.pid }
    }
  }

  private func release(_ attachment: Attachment) {
    let current = state.withLock { $0.current }
    for (name, version) in attachment.versions {
      version.retire(successor: current[name])
      let place = current[name].map { next in
        next.debugger.map { "in process \($0.pid) (debugger)" } ?? "as it was deployed"
      }
      notify("\(name) \(place.map { "runs again \($0)" } ?? "runs nowhere any more").", of: name)
    }
  }

  private func notify(_ message: String, of function: String) {
    context.log.append(function: function, level: "notice", message: message)
  }
}
