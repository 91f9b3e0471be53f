/// The data that a worker started in a debugger sends to register with the hub.
///
/// The hub responds to `POST /hearth/v1/workers` with lines; see `WorkerLine`.
package struct WorkerRegistration: Codable, Sendable {
  package var pid: Int32
  /// The port on which the worker listens, on the same machine as the hub.
  package var port: Int
  /// The only function that the worker runs; nil for all functions.
  package var target: String?
  package var manifest: FunctionManifest

  package init(pid: Int32, port: Int, target: String?, manifest: FunctionManifest) {
    self.pid = pid
    self.port = port
    self.target = target
    self.manifest = manifest
  }
}

/// A line of the hub's response to a registration, which is valid while the response stays open.
///
/// The first line lists the functions that the worker runs from now on. Further lines keep the
/// connection from being idle for too long.
package struct WorkerLine: Codable, Sendable, Equatable {
  /// The id for releasing the worker with `DELETE /hearth/v1/workers/ID`.
  package var id: String
  package var functions: [String]

  package init(id: String, functions: [String]) {
    self.id = id
    self.functions = functions
  }
}
