/// The bounds of functions and of requests to them, which are Cloud Functions' own.
package enum InvocationLimits {
  /// The longest body of a call or an event.
  package static let bodyBytesMax = 10 << 20
  /// The longest body of a request to an HTTP function.
  package static let uploadBytesMax = 32 << 20

  /// The time of one invocation of a function that does not set one.
  package static let secondsDefault = 60
  /// The time of one invocation on an event.
  package static let eventSecondsMax = 540
  /// The time of one scheduled run or task.
  package static let backgroundSecondsMax = 1800
  /// The time of one request of a client.
  package static let requestSecondsMax = 3600

  /// Invocations that one worker runs at once.
  package static let concurrencyMax = 1000
  /// Workers of one function.
  package static let instancesMax = 1000
  /// Workers of all functions together, on one machine.
  package static let workersMax = 200
  /// Workers that `minInstances` of all functions together keep; the rest is for the others.
  package static let instancesKeptMax = workersMax / 2
  /// Functions of one deployment or process; they share a binary and start on their first use.
  package static let functionsMax = 5000
  /// The longest manifest, with room for as many functions with long triggers.
  package static let manifestBytesMax = 16 << 20
  /// The longest text in a manifest, as long as the longest name of a document.
  package static let textBytesMax = 6 << 10
  /// The regions, secrets or filters of one function.
  package static let listMax = 100
  /// The sizes of memory of one worker.
  package static let memoryMebibytes = 128...32_768
  /// Tries of a scheduled run after the first.
  package static let scheduleRetriesMax = 5
  /// The longest time in a retry policy: 31 days, as long as Cloud Tasks keeps a task.
  package static let retrySecondsMax = 31.0 * 86_400
}
