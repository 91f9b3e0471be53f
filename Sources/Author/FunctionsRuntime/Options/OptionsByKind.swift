// The options of each kind of function. Options without meaning for a kind are missing there, so
// that setting them does not compile.

/// The options of `OnCall` and `OnStreamingCall`.
///
/// `dates` is how dates look in the JSON; `secondsSince2001` by default, as the Swift client
/// writes. `cors` names the pages of other origins that may call; `any` by default.
/// `enforceAppCheck` refuses calls without a valid App Check token, which are otherwise only
/// logged; `consumeAppCheckToken` tells the handler whether the token was used before. The other
/// options are as in `GlobalOptions`.
public struct CallableOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Options; those not given fall back to the app's defaults.
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
/// `cors` names the pages of other origins that may call; `none` by default. The other options are
/// as in `GlobalOptions`.
public struct RequestOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Options; those not given fall back to the app's defaults.
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
/// `dates` is how dates look in the JSON; RFC 3339 by default. The other options are as in
/// `GlobalOptions`.
public struct TypedOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Options; those not given fall back to the app's defaults.
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
/// `retry` says whether and how a failing event or run is tried again; without it the failure is
/// only recorded. A single failure can override it by an `EventError`. The other options are as in
/// `GlobalOptions`.
public struct EventOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Options; those not given fall back to the app's defaults.
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
/// `retry` is as in `EventOptions`. `dates` is how dates look in the event's JSON; RFC 3339 by
/// default. The other options are as in `GlobalOptions`.
public struct CloudEventOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Options; those not given fall back to the app's defaults.
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

/// The options of `OnTaskDispatched`.
///
/// `retry` says when and how often a failing task is tried again; without it, three times. `dates`
/// is how dates look in the payload; RFC 3339 by default. The other options are as in
/// `GlobalOptions`.
public struct TaskQueueOptions: Sendable, Hashable {
  let values: FunctionOptions

  /// Options; those not given fall back to the app's defaults.
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
