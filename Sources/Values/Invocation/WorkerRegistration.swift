/// What a worker that somebody has started in a debugger tells the hub about itself.
///
/// The hub answers `POST /hearth/v1/workers` with lines; see `WorkerLine`.
package struct WorkerRegistration: Codable, Sendable {
  package var pid: Int32
  /// The port on which the worker listens, on the same machine as the hub.
  package var port: Int
  /// The only function that the worker runs; nil for all.
  package var target: String?
  package var manifest: FunctionManifest

  /// A registration of a process that listens.
  package init(pid: Int32, port: Int, target: String?, manifest: FunctionManifest) {
    self.pid = pid
    self.port = port
    self.target = target
    self.manifest = manifest
  }
}

/// A line of the hub's answer to a registration, which holds while the answer is open.
///
/// The first line says which functions the worker runs from now on; more lines follow so that the
/// connection is not silent for too long.
package struct WorkerLine: Codable, Sendable, Equatable {
  /// The id by which the worker can be released: `DELETE /hearth/v1/workers/ID`.
  package var id: String
  package var functions: [String]

  /// A line about a worker.
  package init(id: String, functions: [String]) {
    self.id = id
    self.functions = functions
  }
}
