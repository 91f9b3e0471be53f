import FunctionsRuntime
import Logging

/// A log handler that records a function's log lines with the run that logged them.
struct RecordingLogHandler: LogHandler {
  let recorder: RunRecorder
  let function: String
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var logLevel: Logger.Level = .trace

  init(recorder: RunRecorder, function: String) {
    self.recorder = recorder
    self.function = function
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var all = metadata
    if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
    if let own = event.metadata { all.merge(own) { $1 } }
    if let error = event.error { all["error"] = "\(error)" }
    recorder.append(
      FunctionLogLine(
        function: function,
        invocationID: RunningInvocation.current?.id,
        level: event.level,
        message: event.message.description,
        metadata: all.mapValues(\.description)
      )
    )
  }
}
