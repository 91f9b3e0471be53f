/// The limits on functions and on requests to them, mostly those of Cloud Functions.
package enum FunctionLimits {
  /// The maximum body size of a call or an event.
  package static let bodyBytesMax = 10 << 20
  /// The maximum body size of a request to an HTTP function.
  package static let uploadBytesMax = 32 << 20

  /// The default timeout of an invocation.
  package static let secondsDefault = 60
  /// The maximum timeout of an invocation for an event.
  package static let eventSecondsMax = 540
  /// The maximum timeout of a scheduled run or a task.
  package static let backgroundSecondsMax = 1800
  /// The maximum timeout of a function that Auth waits for.
  package static let blockingSecondsMax = 7
  /// The maximum timeout of a client's request.
  package static let requestSecondsMax = 3600

  /// The maximum number of invocations that one worker runs at once.
  package static let concurrencyMax = 1000
  /// The maximum number of workers of one function.
  package static let instancesMax = 1000
  /// The maximum number of workers of all functions together on one machine.
  package static let workersMax = 200
  /// The maximum number of workers that `minInstances` reserves, for all functions together.
  ///
  /// The remaining workers are available to every function.
  package static let instancesKeptMax = workersMax / 2
  /// The maximum number of functions in one deployment or process.
  ///
  /// They share a binary and start on first use.
  package static let functionsMax = 5000
  /// The maximum size of a manifest, enough for `functionsMax` functions with long triggers.
  package static let manifestBytesMax = 16 << 20
  /// The maximum length of a text in a manifest, equal to that of a document name.
  package static let textBytesMax = 6 << 10
  /// The maximum number of regions, secrets or filters of one function.
  package static let listMax = 100
  /// The allowed memory sizes of one worker.
  package static let memoryMebibytes = 128...32_768
  /// The maximum number of tasks of one queue that start per second, which is also the default.
  package static let tasksPerSecondMax = 500
  /// The maximum number of tasks of one queue that run at the same time.
  package static let concurrentTasksMax = 5000
  /// The default number of tasks of one queue that run at the same time.
  package static let concurrentTasksDefault = 1000
  /// The maximum length of a task's id.
  package static let taskIDBytesMax = 500
  /// The allowed time for one attempt of a task or a scheduled run, from its sender's view.
  package static let attemptSeconds = 15...backgroundSecondsMax
  /// The maximum number of retries of a scheduled run.
  package static let scheduleRetriesMax = 5
  /// The longest time in a retry policy: 31 days, the time that Cloud Tasks keeps a task.
  package static let retrySecondsMax = 31.0 * 86_400
}
