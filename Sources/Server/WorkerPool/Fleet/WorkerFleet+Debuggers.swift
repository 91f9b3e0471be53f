package import Invocation
import Logging
import RuntimeSupport
import Synchronization

/// A process that somebody has started in a debugger to run functions for a while.
package struct DebuggerWorker: Sendable {
  package var pid: Int32
  /// The port on which it listens on this machine.
  package var port: Int
  /// The functions that it runs from now on.
  package var endpoints: [String: FunctionEndpoint]

  /// A process that listens.
  package init(pid: Int32, port: Int, endpoints: [String: FunctionEndpoint]) {
    self.pid = pid
    self.port = port
    self.endpoints = endpoints
  }
}

/// A debugger's process and its functions.
struct Attachment: Sendable {
  var id: String
  var worker: DebuggerWorker
  var versions: [String: FunctionVersion]
  /// Whether the process takes nothing new.
  var isLeaving = false
}

extension WorkerFleet {
  /// The patience with a debugger's process, which may stand still while its user thinks.
  static let debuggerPatience = Duration.seconds(10 * 365 * 86_400)

  /// The longest release, equal to what Cloud Run gives a container that must end.
  private static let releaseTimeMax = Duration.seconds(9)
  private static let releaseWait = Duration.milliseconds(20)

  /// Gives a debugger's process its functions, once it answers.
  ///
  /// From then on it runs them in place of the deployed workers, and without deadlines, until
  /// `detach` or `release`. Of several processes with the same function the last one has it. Throws
  /// when the attachment ends before the process has answered; `detach` makes it end.
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
      tell("\(name) now runs in process \(worker.pid) (debugger).", of: name)
    }
  }

  /// Gives a debugger's functions back; its running invocations may finish, waiting ones move on.
  ///
  /// Returns when it runs nothing any more, or after the time that a worker has to end.
  package func release(_ id: String) async {
    let attachment = state.withLock { state -> Attachment? in
      guard let index = state.attachments.firstIndex(where: { $0.id == id }),
        !state.attachments[index].isLeaving
      else { return nil }
      state.attachments[index].isLeaving = true
      return state.attachments[index]
    }
    guard let attachment else { return }
    giveBack(attachment)
    let end = context.time.now() + Self.releaseTimeMax
    while attachment.versions.values.contains(where: { $0.status.running > 0 }) {
      let now = context.time.now()
      guard now < end else { return }
      do { try await context.time.sleep(now + Self.releaseWait) } catch { return }
    }
  }

  /// Ends an attachment whose process has gone: its invocations fail and its functions go back.
  package func detach(_ id: String) {
    let attachment = state.withLock { state -> Attachment? in
      guard let index = state.attachments.firstIndex(where: { $0.id == id }) else { return nil }
      return state.attachments.remove(at: index)
    }
    guard let attachment else { return }
    if !attachment.isLeaving { giveBack(attachment) }
    for version in attachment.versions.values {
      version.retire(successor: nil)
      version.endWorkers(saying: "its debugger's process \(attachment.worker.pid) has gone")
    }
  }

  /// Whether a deployment is served.
  package var isDeployed: Bool { state.withLock { !$0.deployed.isEmpty } }

  /// The functions of debuggers' processes.
  package var debuggedEndpoints: [String: FunctionEndpoint] {
    state.withLock { state in
      state.current.values.reduce(into: [:]) { endpoints, version in
        if version.debugger != nil { endpoints[version.function.name] = version.function.endpoint }
      }
    }
  }

  /// The processes of debuggers, by the functions that they run.
  package var debuggers: [String: Int32] {
    state.withLock { state in
      state.current.compactMapValues { $0.debugger?.pid }
    }
  }

  private func giveBack(_ attachment: Attachment) {
    let current = state.withLock { $0.current }
    for (name, version) in attachment.versions {
      version.retire(successor: current[name])
      let place = current[name].map { next in
        next.debugger.map { "in process \($0.pid) (debugger)" } ?? "as it was deployed"
      }
      tell("\(name) \(place.map { "runs again \($0)" } ?? "runs nowhere any more").", of: name)
    }
  }

  private func tell(_ message: String, of function: String) {
    context.log.append(function: function, level: "notice", message: message)
  }
}
