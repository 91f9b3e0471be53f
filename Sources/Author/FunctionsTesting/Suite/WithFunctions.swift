public import DocumentModel
public import FunctionsRuntime

/// Runs a test with functions that use a private database, all in this process.
///
/// ```swift
/// try await withFunctions(greet, countUsers) { suite in
///   try await suite.firestore.document("users/tina").set(["displayName": "Tina"])
///   try await suite.settle()
///   #expect(suite.runCount(of: greet) == 1)
/// }
/// ```
///
/// If the functions themselves need the database or HTTP, use the form that builds them in a
/// closure, whose documentation also explains the other parameters. Throws `FunctionsTestingError`,
/// and rethrows the error of `test`.
@discardableResult
public func withFunctions<Output>(
  _ functions: any CloudFunction...,
  project: String = TestEnvironment.defaultProject,
  startTime: (any PointInTime)? = nil,
  deliveryFaults: DeliveryFaults? = nil,
  isolation: isolated (any Actor)? = #isolation,
  fileID: StaticString = #fileID,
  filePath: StaticString = #filePath,
  line: UInt = #line,
  column: UInt = #column,
  test: (FunctionsSuite) async throws -> Output
) async throws -> Output {
  let definitions = functions.map(\.definition)
  return try await withFunctions(
    project: project,
    startTime: startTime,
    deliveryFaults: deliveryFaults,
    isolation: isolation,
    fileID: fileID,
    filePath: filePath,
    line: line,
    column: column,
    { _ in FunctionsApp { definitions } },
    test: test
  )
}

/// Runs a test with functions that are built with the test's own database and HTTP transport.
///
/// ```swift
/// try await withFunctions { environment in
///   MessageFunctions(firestore: environment.firestore, http: environment.http).app
/// } test: { suite in
///   try await suite.firestore.document("chats/c1/messages/m1").set(message)
///   try await suite.settle()
///   #expect(try await suite.deliveries().map(\.state) == [.succeeded])
/// }
/// ```
///
/// Everything runs in this process. The code that turns writes into events and delivers them to
/// functions is the same as in `hearth start`. Tests share nothing, so any number of them can run
/// in parallel. Nothing outlives the call: when `test` returns, functions that still run are
/// cancelled, and the call waits for them.
///
/// The suite's time begins at `startTime`, or now, and stands still until `settle` or
/// `FunctionsSuite.clock` advances it. The functions find `environment` in `environment.variables`,
/// with the addition of the variables that Hearth gives every worker.
///
/// Throws `FunctionsTestingError` for functions that cannot be deployed, and if the suite itself
/// failed. Rethrows the errors of `build` and `test`. Unscripted HTTP requests that no `settle` has
/// reported are recorded as an issue at the caller's line, or thrown outside a test.
@discardableResult
public func withFunctions<Output>(
  project: String = TestEnvironment.defaultProject,
  environment: [String: String] = [:],
  startTime: (any PointInTime)? = nil,
  deliveryFaults: DeliveryFaults? = nil,
  isolation: isolated (any Actor)? = #isolation,
  fileID: StaticString = #fileID,
  filePath: StaticString = #filePath,
  line: UInt = #line,
  column: UInt = #column,
  _ build: (TestEnvironment) async throws -> FunctionsApp,
  test: (FunctionsSuite) async throws -> Output
) async throws -> Output {
  try await withFunctions(
    \.self,
    project: project,
    environment: environment,
    startTime: startTime,
    deliveryFaults: deliveryFaults,
    isolation: isolation,
    fileID: fileID,
    filePath: filePath,
    line: line,
    column: column,
    build
  ) { suite, _ in try await test(suite) }
}

/// Runs a test with functions that the test also receives, so that it can refer to them.
///
/// ```swift
/// try await withFunctions(\.app) { environment in
///   WelcomeFunctions(firestore: environment.firestore)
/// } test: { suite, functions in
///   let greeting = try await suite.call(functions.greeting, GreetingQuery(), as: "tina")
///   #expect(suite.runCount(of: functions.greeting) == 1)
/// }
/// ```
///
/// `app` returns the app to deploy from the result of `build`. In all other respects, including
/// errors, this function works like the form whose test receives only the suite.
@discardableResult
public func withFunctions<Functions, Output>(
  _ app: (Functions) -> FunctionsApp,
  project: String = TestEnvironment.defaultProject,
  environment: [String: String] = [:],
  startTime: (any PointInTime)? = nil,
  deliveryFaults: DeliveryFaults? = nil,
  isolation: isolated (any Actor)? = #isolation,
  fileID: StaticString = #fileID,
  filePath: StaticString = #filePath,
  line: UInt = #line,
  column: UInt = #column,
  _ build: (TestEnvironment) async throws -> Functions,
  test: (FunctionsSuite, Functions) async throws -> Output
) async throws -> Output {
  let parts = try await SuiteParts(
    project: project,
    environment: environment,
    startTime: startTime?.timestamp
  )
  let functions = try await build(parts.environment)
  let core = try SuiteCore(app: app(functions), parts: parts, faults: deliveryFaults)
  try await core.deploy()
  try await core.invoker.host.prepare()
  let site = CallSite(fileID, filePath, line, column)
  do {
    let output = try await core.run { try await test(FunctionsSuite(core: core), functions) }
    try await site.record { try core.checkRequests() }
    return output
  } catch {
    // The requests may be the cause. Outside a test of a framework only the test's error is thrown.
    try? await site.record { try core.checkRequests() }
    throw error
  }
}
