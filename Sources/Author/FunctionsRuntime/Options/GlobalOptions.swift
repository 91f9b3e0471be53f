/// The default options of an app, for functions that do not set the options themselves.
///
/// An option has no effect on kinds of functions that do not have it.
public struct GlobalOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Creates the options.
  ///
  /// An option that is not given has the default of Cloud Functions.
  ///
  /// - Parameters:
  ///   - region: The region in which the functions run, such as `europe-west1`; `us-central1` by
  ///     default.
  ///   - memory: The memory of one worker; 256 MiB by default.
  ///   - timeout: The time limit of one invocation; 60 seconds by default. At most 540 seconds for
  ///     events, 1800 for schedules and tasks, and 3600 for callables and HTTP functions. A
  ///     fraction of a second is rounded up.
  ///   - concurrency: The number of invocations that one worker runs at once; 80 by default, at
  ///     most 1000.
  ///   - minInstances: The number of workers that keep running even if idle; 0 by default.
  ///   - maxInstances: The maximum number of workers; unlimited by default.
  ///   - secrets: The names of the secrets that the workers receive as environment variables.
  ///   - retry: The rule for retrying failed events, scheduled runs and tasks.
  ///   - dates: The format of dates in the JSON of callables, typed functions, events and tasks.
  ///   - cors: The origins whose pages may call callables and HTTP functions.
  ///   - enforceAppCheck: True to refuse calls to callables without a valid App Check token.
  ///   - consumeAppCheckToken: True to tell callables whether the App Check token of a call was
  ///     used before.
  public init(
    region: String? = nil,
    memory: FunctionMemory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    secrets: [String]? = nil,
    retry: RetryPolicy? = nil,
    dates: JSONDates? = nil,
    cors: CORSOrigins = .standard,
    enforceAppCheck: Bool? = nil,
    consumeAppCheckToken: Bool? = nil
  ) {
    values = FunctionOptions(
      region: region,
      memory: memory,
      timeout: timeout,
      concurrency: concurrency,
      minInstances: minInstances,
      maxInstances: maxInstances,
      secrets: secrets,
      retry: retry,
      dates: dates,
      cors: cors.unlessStandard,
      enforceAppCheck: enforceAppCheck,
      consumeAppCheckToken: consumeAppCheckToken
    )
  }
}

/// The memory sizes that Cloud Functions offers.
public enum FunctionMemory: Int, Sendable, Hashable, CaseIterable {
  case mib128 = 128
  case mib256 = 256
  case mib512 = 512
  case gib1 = 1024
  case gib2 = 2048
  case gib4 = 4096
  case gib8 = 8192
  case gib16 = 16384
  case gib32 = 32768
}
