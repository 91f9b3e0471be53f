// The options of each kind of function. An option without meaning for a kind does not exist in its
// type, so that setting it does not compile.

/// The options of `OnCall` and `OnStreamingCall`.
///
/// - `dates`: the format of dates in the JSON; `secondsSince2001` by default, as the Swift client
///   writes them.
/// - `cors`: the origins whose pages may call the function; `any` by default.
/// - `enforceAppCheck`: true to refuse calls without a valid App Check token. Otherwise an invalid
///   token is only logged.
/// - `consumeAppCheckToken`: true to tell the handler whether the token was used before.
///
/// See `GlobalOptions` for the other options.
public struct CallableOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Creates the options.
  ///
  /// An option that is not given has the app's default.
  public init(
    region: String? = nil,
    memory: FunctionMemory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    secrets: [String]? = nil,
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
      dates: dates,
      cors: cors.unlessStandard,
      enforceAppCheck: enforceAppCheck,
      consumeAppCheckToken: consumeAppCheckToken
    )
  }
}

/// The options of `OnRequest`.
///
/// `cors` sets the origins whose pages may call the function; `none` by default. See
/// `GlobalOptions` for the other options.
public struct RequestOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Creates the options.
  ///
  /// An option that is not given has the app's default.
  public init(
    region: String? = nil,
    memory: FunctionMemory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    secrets: [String]? = nil,
    cors: CORSOrigins = .standard
  ) {
    values = FunctionOptions(
      region: region,
      memory: memory,
      timeout: timeout,
      concurrency: concurrency,
      minInstances: minInstances,
      maxInstances: maxInstances,
      secrets: secrets,
      cors: cors.unlessStandard
    )
  }
}

/// The options of `OnTyped`.
///
/// `dates` sets the format of dates in the JSON; RFC 3339 by default. See `GlobalOptions` for the
/// other options.
public struct TypedOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Creates the options.
  ///
  /// An option that is not given has the app's default.
  public init(
    region: String? = nil,
    memory: FunctionMemory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    secrets: [String]? = nil,
    dates: JSONDates? = nil
  ) {
    values = FunctionOptions(
      region: region,
      memory: memory,
      timeout: timeout,
      concurrency: concurrency,
      minInstances: minInstances,
      maxInstances: maxInstances,
      secrets: secrets,
      dates: dates
    )
  }
}

/// The options of functions on documents and of `OnSchedule`.
///
/// `retry` sets the rule for retrying failed events and scheduled runs. Without it a failure is
/// only recorded. A handler can override the rule for a single failure by throwing an `EventError`.
/// See `GlobalOptions` for the other options.
public struct EventOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Creates the options.
  ///
  /// An option that is not given has the app's default.
  public init(
    region: String? = nil,
    memory: FunctionMemory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    secrets: [String]? = nil,
    retry: RetryPolicy? = nil
  ) {
    values = FunctionOptions(
      region: region,
      memory: memory,
      timeout: timeout,
      concurrency: concurrency,
      minInstances: minInstances,
      maxInstances: maxInstances,
      secrets: secrets,
      retry: retry
    )
  }
}

/// The options of `OnCloudEvent`.
///
/// `retry` sets the rule for retrying failed events, as in `EventOptions`. `dates` sets the format
/// of dates in the event's JSON; RFC 3339 by default. See `GlobalOptions` for the other options.
public struct CloudEventOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Creates the options.
  ///
  /// An option that is not given has the app's default.
  public init(
    region: String? = nil,
    memory: FunctionMemory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    secrets: [String]? = nil,
    retry: RetryPolicy? = nil,
    dates: JSONDates? = nil
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
      dates: dates
    )
  }
}

/// The options of `BeforeUserCreated` and `BeforeUserSignedIn`.
///
/// See `GlobalOptions` for the options.
public struct BlockingOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Creates the options.
  ///
  /// An option that is not given has the app's default.
  public init(
    region: String? = nil,
    memory: FunctionMemory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    secrets: [String]? = nil
  ) {
    values = FunctionOptions(
      region: region,
      memory: memory,
      timeout: timeout,
      concurrency: concurrency,
      minInstances: minInstances,
      maxInstances: maxInstances,
      secrets: secrets
    )
  }
}

/// The options of `OnTaskDispatched`.
///
/// `retry` sets when and how often a failed task is retried. Without it a task has three attempts.
/// `dates` sets the format of dates in the payload; RFC 3339 by default. See `GlobalOptions` for
/// the other options.
public struct TaskQueueOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Creates the options.
  ///
  /// An option that is not given has the app's default.
  public init(
    region: String? = nil,
    memory: FunctionMemory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    secrets: [String]? = nil,
    retry: RetryPolicy? = nil,
    dates: JSONDates? = nil
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
      dates: dates
    )
  }
}
