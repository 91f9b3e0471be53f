/// The options of all functions of an app that do not set their own.
///
/// Each option applies to the kinds of functions that have it.
public struct GlobalOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Options; an option that is not given has Hearth's default, which is that of Cloud Functions.
  ///
  /// - Parameters:
  ///   - region: Where the functions run, such as `europe-west1`; `us-central1` by default.
  ///   - memory: Memory of one worker; 256 MiB by default.
  ///   - timeout: Total time of one invocation; 60 seconds by default. At most 540 seconds for
  ///     events, 1800 for schedules and tasks, and 3600 for what clients call; parts of a second
  ///     count as a whole one.
  ///   - concurrency: Invocations that one worker runs at once; 80 by default, at most 1000.
  ///   - minInstances: Workers kept running even when idle; 0 by default.
  ///   - maxInstances: Workers at most; unbounded by default.
  ///   - secrets: Names of secrets that the workers get as environment variables.
  ///   - retry: Whether and how failing events, scheduled runs and tasks are tried again.
  ///   - dates: How dates look in the JSON of callables, plain JSON functions, events and tasks.
  ///   - cors: Which pages of other origins may call callables and HTTP functions.
  ///   - enforceAppCheck: Whether callables refuse calls without a valid App Check token.
  ///   - consumeAppCheckToken: Whether callables are told if a call's App Check token was used
  ///     before.
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

/// The sizes of memory that Cloud Functions offers.
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
