/// The options of every kind of function, as used by the host and the manifest.
///
/// Authors set options for one kind of function, such as `CallableOptions`, or `GlobalOptions` for
/// all.
package struct FunctionOptions: Sendable, Hashable {
  package var region: String?
  package var memory: FunctionMemory?
  package var timeout: Duration?
  package var concurrency: Int?
  package var minInstances: Int?
  package var maxInstances: Int?
  package var secrets: [String]?
  package var retry: RetryPolicy?
  package var dates: JSONDates?
  package var cors: CORSOrigins?
  package var enforceAppCheck: Bool?
  package var consumeAppCheckToken: Bool?

  package init(
    region: String? = nil,
    memory: FunctionMemory? = nil,
    timeout: Duration? = nil,
    concurrency: Int? = nil,
    minInstances: Int? = nil,
    maxInstances: Int? = nil,
    secrets: [String]? = nil,
    retry: RetryPolicy? = nil,
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
    self.secrets = secrets
    self.retry = retry
    self.dates = dates
    self.cors = cors
    self.enforceAppCheck = enforceAppCheck
    self.consumeAppCheckToken = consumeAppCheckToken
  }

  /// Applies an app's defaults to the options that this function has not set.
  ///
  /// A default is ignored if it has no meaning for the function's kind of trigger.
  mutating func fall(backTo defaults: FunctionOptions, for trigger: FunctionDefinition.Trigger) {
    region = region ?? defaults.region
    memory = memory ?? defaults.memory
    timeout = timeout ?? defaults.timeout
    concurrency = concurrency ?? defaults.concurrency
    minInstances = minInstances ?? defaults.minInstances
    maxInstances = maxInstances ?? defaults.maxInstances
    secrets = secrets ?? defaults.secrets
    if trigger.canBeTriedAgain { retry = retry ?? defaults.retry }
    if trigger.hasJSON { dates = dates ?? defaults.dates }
    if trigger.isCalledByPages { cors = cors ?? defaults.cors }
    if trigger == .callable {
      enforceAppCheck = enforceAppCheck ?? defaults.enforceAppCheck
      consumeAppCheckToken = consumeAppCheckToken ?? defaults.consumeAppCheckToken
    }
  }
}
