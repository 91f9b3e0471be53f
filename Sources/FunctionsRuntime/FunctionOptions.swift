/// How a function is run; what is nil falls back to the app's defaults, then to Hearth's.
public struct FunctionOptions: Sendable, Hashable {
  /// Where the function runs, such as `europe-west1`; `us-central1` by default.
  public var region: String?
  /// Memory of one worker; 256 MiB by default.
  public var memory: Memory?
  /// Total time of one invocation; 60 seconds by default.
  ///
  /// At most 540 seconds for events, 1800 for schedules and tasks and 3600 for callables; parts of a
  /// second count as a whole one.
  public var timeout: Duration?
  /// Invocations that one worker runs at once; 80 by default, at most 1000.
  public var concurrency: Int?
  /// Workers kept running even when idle; 0 by default.
  public var minInstances: Int?
  /// Workers at most; unbounded by default.
  public var maxInstances: Int?
  /// Names of secrets that the worker gets as environment variables.
  public var secrets: [String]?
  /// Whether and how a failing event, scheduled run or task is tried again; not for callables.
  ///
  /// Without it a failing event or scheduled run is recorded and not tried again, and a task is
  /// tried three times. See `EventError` for how one failure can say otherwise.
  public var retry: RetryPolicy?
  /// How dates look in a callable's JSON; `secondsSince2001` by default, as the Swift client writes.
  public var dates: JSONDates?
  /// Which pages of other origins may call; `any` for callables and `none` for HTTP functions.
  public var cors: CORSOrigins?
  /// Whether a callable refuses calls without a valid App Check token; without it they are logged.
  public var enforceAppCheck: Bool?
  /// Whether a callable is told if a call's App Check token was used before.
  public var consumeAppCheckToken: Bool?

  /// Options, all of which have a default.
  public init(
    region: String? = nil,
    memory: Memory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    retry: RetryPolicy? = nil,
    secrets: [String]? = nil,
    dates: JSONDates? = nil,
    cors: CORSOrigins? = nil,
    enforceAppCheck: Bool? = nil,
    consumeAppCheckToken: Bool? = nil
  ) {
    self.region = region
    self.memory = memory
    self.timeout = timeout
    self.concurrency = concurrency
    self.minInstances = minInstances
    self.maxInstances = maxInstances
    self.retry = retry
    self.secrets = secrets
    self.dates = dates
    self.cors = cors
    self.enforceAppCheck = enforceAppCheck
    self.consumeAppCheckToken = consumeAppCheckToken
  }

  /// The sizes of memory that Cloud Functions offers.
  public enum Memory: Int, Sendable, Hashable, CaseIterable {
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

  /// These options, with those of `defaults` where these have none.
  func falling(backTo defaults: FunctionOptions) -> FunctionOptions {
    FunctionOptions(
      region: region ?? defaults.region,
      memory: memory ?? defaults.memory,
      timeout: timeout ?? defaults.timeout,
      concurrency: concurrency ?? defaults.concurrency,
      minInstances: minInstances ?? defaults.minInstances,
      maxInstances: maxInstances ?? defaults.maxInstances,
      retry: retry ?? defaults.retry,
      secrets: secrets ?? defaults.secrets,
      dates: dates ?? defaults.dates,
      cors: cors ?? defaults.cors,
      enforceAppCheck: enforceAppCheck ?? defaults.enforceAppCheck,
      consumeAppCheckToken: consumeAppCheckToken ?? defaults.consumeAppCheckToken
    )
  }
}
