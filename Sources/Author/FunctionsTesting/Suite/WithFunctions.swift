public import DocumentModel
public import FunctionsRuntime

/// Runs a test against functions over a database of its own, all in this process.
///
/// ```swift
/// try await withFunctions(greet, countUsers) { suite in
///   try await suite.firestore.document("users/tina").set(["displayName": "Tina"])
///   try await suite.settle()
///   #expect(suite.runCount(of: greet) == 1)
/// }
/// ```
///
/// For functions that need a database or HTTP themselves, use
/// `withFunctions(project:environment:startTime:deliveryFaults:isolation:_:test:)`, which explains
/// the rest.
/// Throws what `test` throws, and `FunctionsTestingError`.
public func withFunctions<Output>(
  _ functions: any CloudFunction...,
  project: String = FunctionsWorld.defaultProject,
  startTime: Timestamp? = nil,
  deliveryFaults: DeliveryFaults? = nil,
  isolation: isolated (any Actor)? = #isolation,
  test: (FunctionsSuite) async throws -> Output
) async throws -> Output {
  let definitions = functions.map(\.definition)
  return try await withFunctions(
    project: project,
    startTime: startTime,
    deliveryFaults: deliveryFaults,
    isolation: isolation,
    { _ in FunctionsApp { definitions } },
    test: test
  )
}

/// Runs a test against functions built over the test's own database and HTTP, in this process.
///
/// ```swift
/// try await withFunctions { world in
///   MessageFunctions(firestore: world.firestore, http: world.http).app
/// } test: { suite in
///   try await suite.firestore.document("chats/c1/messages/m1").set(message)
///   try await suite.settle()
///   #expect(try await suite.deliveries().map(\.state) == [.succeeded])
/// }
/// ```
///
/// Writes become events and events reach functions by the same code as in `hearth start`; nothing
/// is shared between two tests, so any number run side by side. Nothing outlives the call:
/// functions that still run when `test` returns are cancelled, and the call waits for them. The
/// suite's time begins at `startTime`, or now, and stands still until `settle` or
/// `FunctionsSuite.clock` lets it pass. `environment` is what the functions find in
/// `world.environment`; the variables that Hearth gives every worker are added.
///
/// Throws what `build` and `test` throw, and `FunctionsTestingError`: for functions that cannot be
/// deployed, for HTTP requests without a script that no `settle` has reported, and when the suite
/// itself failed.
public func withFunctions<Output>(
  project: String = FunctionsWorld.defaultProject,
  environment: [String: String] = [:],
  startTime: Timestamp? = nil,
  deliveryFaults: DeliveryFaults? = nil,
  isolation: isolated (any Actor)? = #isolation,
  _ build: (FunctionsWorld) async throws -> FunctionsApp,
  test: (FunctionsSuite) async throws -> Output
) async throws -> Output {
  try await withFunctions(
    \.self,
    project: project,
    environment: environment,
    startTime: startTime,
    deliveryFaults: deliveryFaults,
    isolation: isolation,
    build
  ) { suite, _ in try await test(suite) }
}

/// Runs a test against an author's functions, which the test also gets, to name them.
///
/// ```swift
/// try await withFunctions(\.app) { world in
///   WelcomeFunctions(firestore: world.firestore)
/// } test: { suite, functions in
///   let greeting = try await suite.call(functions.greeting, GreetingQuery(), as: "tina")
///   #expect(suite.runCount(of: functions.greeting) == 1)
/// }
/// ```
///
/// `app` maps the result of `build` to the app that is deployed. Otherwise this is like
/// `withFunctions(project:environment:startTime:deliveryFaults:isolation:_:test:)`.
/// Throws as that form does.
public func withFunctions<Functions, Output>(
  _ app: (Functions) -> FunctionsApp,
  project: String = FunctionsWorld.defaultProject,
  environment: [String: String] = [:],
  startTime: Timestamp? = nil,
  deliveryFaults: DeliveryFaults? = nil,
  isolation: isolated (any Actor)? = #isolation,
  _ build: (FunctionsWorld) async throws -> Functions,
  test: (FunctionsSuite, Functions) async throws -> Output
) async throws -> Output {
  let parts = try await SuiteParts(
    project: project,
    environment: environment,
    startTime: startTime
  )
  let functions = try await build(parts.world)
  let core = try SuiteCore(app: app(functions), parts: parts, faults: deliveryFaults)
  try await core.deploy()
  try await core.invoker.host.prepare()
  return try await core.run { try await test(FunctionsSuite(core: core), functions) }
}
