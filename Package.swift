// swift-tools-version: 6.2
// All targets of the package and their dependencies. `swift package tidy` checks the sources
// against this list.

import PackageDescription

let package = Package(
  name: "hearth",
  // iOS is for the libraries of Psst and what they use; the rest is for servers.
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .executable(name: "hearth", targets: ["HearthCLI"]),
    .executable(name: "psst-functions", targets: ["PsstWorker"]),
    .executable(name: "openai-stub", targets: ["OpenAIStubServer"]),
    .library(name: "FunctionsRuntime", targets: ["FunctionsRuntime"]),
    .library(name: "FirestoreClient", targets: ["FirestoreClient"]),
    .library(name: "DatabaseClient", targets: ["DatabaseClient"]),
    .library(name: "OutboundHTTP", targets: ["OutboundHTTP"]),
    .library(name: "Cryptography", targets: ["Cryptography"]),
    .library(name: "FunctionsTesting", targets: ["FunctionsTesting"]),
    // All libraries for functions in one file, which `make install` packs for other packages.
    .library(
      name: "HearthLibraries",
      type: .static,
      targets: [
        "Cryptography", "DatabaseClient", "FirestoreClient", "FunctionsRuntime", "FunctionsTesting",
        "OutboundHTTP",
      ]
    ),
    .library(name: "PsstModels", targets: ["PsstModels"]),
    .library(name: "PsstServices", targets: ["PsstServices"]),
  ],
  dependencies: [
    // Sockets and event loops, better tested than a new implementation could be.
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    // HPACK for the HTTP/2 server; its framing is used by the client in the tests.
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    // Common types for HTTP requests and responses.
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    // The Firestore messages, binary and JSON. The traits are disabled because nothing here uses
    // them, and SwiftPM passes their flags in a different order for each plan, which would
    // recompile it all.
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
    // The command line: parsing, help, completions and the manual page.
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    // The logging interface shared by the Swift server ecosystem.
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    // Ordered start, signals and graceful shutdown of long-lived services.
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    // Child processes with async streams and process groups on every platform.
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
    // File paths as required by swift-subprocess.
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    // Double-ended queues and heaps.
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    // Channels between tasks with back pressure; already a dependency of swift-service-lifecycle.
    .package(url: "https://github.com/apple/swift-async-algorithms", from: "1.1.4"),
  ],
  targets: libraries() + modules() + topLayer() + application() + starter() + testSupport()
    + programsRunByHand() + testTargets() + [
      // Checks the architecture: imports, dependencies, layers, names, files without a target.
      .plugin(
        name: "Tidy",
        capability: .command(
          intent: .custom(
            verb: "tidy",
            description: "Check imports, dependencies, layers and stray files"
          )
        ),
        path: "Sources/Tooling/Plugins/Tidy"
      )
    ]
)

// MARK: - C

/// Returns the C libraries, layer 0.
func libraries() -> [Target] {
  [
    .systemLibrary(
      name: "CSQLite",
      path: "Sources/C/CSQLite",
      pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]
    ),
    .systemLibrary(
      name: "CCurl",
      path: "Sources/C/CCurl",
      pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]
    ),
    // gzip for gRPC messages; available on every system and already required by curl.
    .systemLibrary(
      name: "CZlib",
      path: "Sources/C/CZlib",
      pkgConfig: "zlib",
      providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]
    ),
    // Hashes, signatures and passwords. swift-crypto would compile BoringSSL for minutes, and curl
    // already requires this library.
    .systemLibrary(
      name: "COpenSSL",
      path: "Sources/C/COpenSSL",
      pkgConfig: "libcrypto",
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]
    ),
    .target(name: "CKernels", path: "Sources/C/CKernels"),
    .target(name: "CMemory", path: "Sources/C/CMemory"),
    // Glibc, Musl or Darwin, under one name.
    module("LibC", in: "Sources/C"),
  ]
}

// MARK: - Modules

/// Returns the modules of layers 1 to 6, ordered by layer.
func modules() -> [Target] {
  [
    // 1: plain values
    module("DocumentModel", in: "Sources/Values"),
    module("JSONText", in: "Sources/Values"),
    module("StatusCodes", in: "Sources/Values"),
    module("FlowControl", in: "Sources/Values", ["DequeModule"]),
    module("Identifiers", in: "Sources/Values", ["LibC"]),
    module("InvocationContext", in: "Sources/Values"),
    module("FunctionLogs", in: "Sources/Values"),
    module("LinearRegex", in: "Sources/Values"),
    module("Cryptography", in: "Sources/Author", ["COpenSSL"]),
    module(
      "FirestoreProtos",
      in: "Sources/Wire",
      ["SwiftProtobuf"],
      exclude: ["README.md", "Definitions"]
    ),

    // 2: contracts
    module(
      "Identity",
      in: "Sources/Values",
      ["Cryptography", "FlowControl", "Identifiers", "JSONText", "StatusCodes"]
    ),
    module("Events", in: "Sources/Values", ["DocumentModel", "StatusCodes"]),
    module("Schedules", in: "Sources/Values", ["DocumentModel", "StatusCodes"]),
    module("StorageEngine", in: "Sources/Storage", ["LibC", "StatusCodes"]),
    module("OutboundHTTP", in: "Sources/Author", ["CCurl", "LibC", "StatusCodes"]),
    module("Manifests", in: "Sources/Values"),
    module("DatabaseModel", in: "Sources/Values", ["DocumentModel", "JSONText"]),
    module(
      "HTTPMessages",
      in: "Sources/Wire",
      ["JSONText", "StatusCodes", "HTTPTypes", "NIOCore"]
    ),

    // 3: contracts in use
    module(
      "Invocation",
      in: "Sources/Values",
      ["HTTPMessages", "StatusCodes", "HTTPTypes", "NIOCore"]
    ),
    module("ProductionPlan", in: "Sources/Server", ["JSONText", "Manifests"]),
    module(
      "TaskQueueModel",
      in: "Sources/Values",
      ["DocumentModel", "Events", "Manifests", "StatusCodes"]
    ),
    module(
      "EventLog",
      in: "Sources/Storage",
      [
        "DocumentModel", "Events", "Identity", "InvocationContext", "StatusCodes", "StorageEngine",
        "DequeModule", "Logging", "ServiceLifecycle",
      ]
    ),
    module(
      "SQLiteStorage",
      in: "Sources/Storage",
      ["LibC", "CSQLite", "StorageEngine", "Logging"]
    ),
    module(
      "QueryEngine",
      in: "emulator/Firestore",
      [
        "DocumentModel", "Events", "JSONText", "StatusCodes", "StorageEngine", "DequeModule",
        "HeapModule", "Logging",
      ]
    ),
    module(
      "VectorIndex",
      in: "emulator/Vectors",
      ["CKernels", "DocumentModel", "JSONText", "StatusCodes", "StorageEngine"]
    ),
    module(
      "SecurityRules",
      in: "emulator",
      ["Cryptography", "DocumentModel", "FlowControl", "Identifiers", "JSONText", "LinearRegex"]
    ),
    module(
      "DatabaseRules",
      in: "emulator/Database",
      ["DatabaseModel", "JSONText", "LinearRegex"]
    ),
    module(
      "HTTPSupport",
      in: "Sources/Wire",
      [
        "FlowControl", "HTTPMessages", "JSONText", "LibC", "StatusCodes", "DequeModule",
        "HTTPTypes", "Logging", "NIOCore", "NIOHTTP1", "NIOPosix", "ServiceLifecycle",
      ]
    ),
    module(
      "FirestoreWire",
      in: "Sources/Wire",
      ["DocumentModel", "Events", "FirestoreProtos", "StatusCodes", "SwiftProtobuf"]
    ),
    module("JSONTranscoding", in: "Sources/Wire", ["StatusCodes", "SwiftProtobuf"]),
    module(
      "GoogleAccess",
      in: "Sources/Wire",
      ["Cryptography", "FlowControl", "JSONText", "OutboundHTTP", "StatusCodes"]
    ),

    // 4: engines
    module(
      "HTTP2Server",
      in: "Sources/Wire",
      [
        "CZlib", "HTTPMessages", "HTTPSupport", "Identifiers", "StatusCodes", "DequeModule",
        "HTTPTypes", "Logging", "NIOCore", "NIOHPACK", "SwiftProtobuf",
      ]
    ),
    module(
      "WebChannel",
      in: "Sources/Wire",
      [
        "HTTPMessages", "HTTPSupport", "Identifiers", "JSONText", "StatusCodes", "DequeModule",
        "HTTPTypes", "NIOCore",
      ]
    ),
    module(
      "DocumentStore",
      in: "emulator/Firestore",
      [
        "Cryptography", "DocumentModel", "EventLog", "Events", "Identifiers", "Identity", "LibC",
        "QueryEngine", "StatusCodes", "StorageEngine", "DequeModule", "HeapModule", "Logging",
        "ServiceLifecycle",
      ]
    ),
    module(
      "DatabaseTree",
      in: "emulator/Database",
      [
        "Cryptography", "DatabaseModel", "DatabaseRules", "DocumentModel", "EventLog", "Events",
        "FlowControl", "Identity", "InvocationContext", "JSONText",
        "StorageEngine", "DequeModule", "Logging", "ServiceLifecycle",
      ]
    ),
    module(
      "AuthAccounts",
      in: "emulator/Auth",
      [
        "Cryptography", "DocumentModel", "EventLog", "Events", "Identifiers", "Identity",
        "JSONText", "StatusCodes", "StorageEngine",
      ]
    ),
    module(
      "WorkerPool",
      in: "Sources/Server",
      [
        "FlowControl", "FunctionLogs", "HTTPMessages", "Identity", "Invocation", "JSONText", "LibC",
        "Manifests", "StatusCodes", "DequeModule", "HTTPTypes", "HeapModule", "Logging", "NIOCore",
        "NIOHTTP1", "NIOPosix", "ServiceLifecycle", "Subprocess", "SystemPackage",
      ]
    ),
    module(
      "FirestoreClient",
      in: "Sources/Author",
      [
        "DocumentModel", "FirestoreProtos", "FirestoreWire", "FlowControl", "GoogleAccess",
        "Identifiers", "InvocationContext", "JSONText", "OutboundHTTP", "StatusCodes",
        "AsyncAlgorithms", "SwiftProtobuf",
      ]
    ),

    // 5: services
    module(
      "FirestoreEmulator",
      in: "emulator/Firestore",
      [
        "DocumentModel", "DocumentStore", "FirestoreProtos", "FirestoreWire", "FlowControl",
        "HTTP2Server", "HTTPMessages", "HTTPSupport", "Identifiers", "Identity",
        "InvocationContext", "JSONText", "JSONTranscoding", "QueryEngine", "SecurityRules",
        "StatusCodes", "WebChannel", "HTTPTypes", "Logging", "NIOCore", "NIOHPACK", "SwiftProtobuf",
      ]
    ),
    module(
      "RealtimeDatabaseEmulator",
      in: "emulator/Database",
      [
        "Cryptography", "DatabaseModel", "DatabaseRules", "DatabaseTree", "DocumentModel",
        "HTTPMessages", "HTTPSupport", "Identifiers", "Identity", "InvocationContext", "JSONText",
        "StatusCodes",
        "HTTPTypes", "Logging", "NIOCore", "NIOHTTP1", "NIOWebSocket", "ServiceLifecycle",
      ]
    ),
    module(
      "DatabaseClient",
      in: "Sources/Author",
      [
        "DatabaseModel", "FirestoreClient", "GoogleAccess", "InvocationContext", "JSONText",
        "OutboundHTTP",
      ],
      // Apple's platforms have WebSockets in URLSession.
      onLinux: ["NIOCore", "NIOHTTP1", "NIOPosix", "NIOWebSocket"]
    ),
    module(
      "AuthEmulator",
      in: "emulator/Auth",
      [
        "AuthAccounts", "Cryptography", "DocumentModel", "HTTPMessages", "HTTPSupport",
        "Identifiers", "Identity", "Invocation", "JSONText", "Manifests", "StatusCodes",
        "StorageEngine", "HTTPTypes", "Logging", "NIOCore",
      ]
    ),
    module(
      "VectorEmulator",
      in: "emulator/Vectors",
      [
        "HTTPMessages", "HTTPSupport", "Identifiers", "JSONText", "StatusCodes", "VectorIndex",
        "HTTPTypes", "Logging", "NIOCore", "ServiceLifecycle",
      ]
    ),
    module(
      "Console",
      in: "emulator",
      [
        "HTTPMessages", "HTTPSupport", "Identifiers", "JSONText", "StatusCodes", "HTTPTypes",
        "NIOCore",
      ],
      // The page is part of the program, so that an installed binary needs no files.
      resources: [.embedInCode("Pages")]
    ),
    module(
      "DataExport",
      in: "emulator",
      [
        "AuthAccounts", "DatabaseModel", "DatabaseTree", "DocumentModel", "DocumentStore",
        "FirestoreProtos", "FirestoreWire", "FlowControl", "Identity", "JSONText", "LibC",
        "StatusCodes", "StorageEngine", "VectorIndex", "SwiftProtobuf",
      ]
    ),
    module(
      "TriggerDelivery",
      in: "triggers",
      [
        "DatabaseModel", "DocumentModel", "EventLog", "Events", "FirestoreWire", "FlowControl",
        "HTTPMessages", "Identifiers", "Identity", "Invocation", "InvocationContext", "Manifests",
        "OutboundHTTP", "Schedules", "StatusCodes", "StorageEngine", "TaskQueueModel",
        "DequeModule", "HTTPTypes", "HeapModule", "Logging", "NIOCore", "NIOPosix",
        "ServiceLifecycle", "SwiftProtobuf",
      ]
    ),
    module(
      "TaskQueues",
      in: "triggers",
      [
        "DocumentModel", "Events", "FlowControl", "HTTPMessages", "HTTPSupport", "Identity",
        "InvocationContext", "JSONText", "Manifests", "OutboundHTTP", "StatusCodes",
        "TaskQueueModel", "HTTPTypes", "Logging", "NIOCore",
      ]
    ),
    module(
      "FunctionsGateway",
      in: "Sources/Server",
      [
        "Events", "FlowControl", "HTTPMessages", "HTTPSupport", "Identifiers", "Invocation",
        "InvocationContext", "Manifests", "StatusCodes", "HTTPTypes", "Logging", "NIOCore",
      ]
    ),
    module(
      "FunctionsRuntime",
      in: "Sources/Author",
      [
        "DatabaseModel", "DocumentModel", "Events", "FirestoreProtos", "FirestoreWire",
        "FlowControl", "FunctionLogs", "GoogleAccess", "HTTPMessages", "HTTPSupport", "Identifiers",
        "Identity",
        "Invocation", "InvocationContext", "JSONText", "LibC", "Manifests", "OutboundHTTP",
        "Schedules", "StatusCodes", "HTTPTypes", "Logging", "NIOCore", "ServiceLifecycle",
        "SwiftProtobuf", "UnixSignals",
      ]
    ),
    module(
      "Deployment",
      in: "Sources/Server",
      [
        "Events", "FlowControl", "Identifiers", "JSONText", "LibC", "Manifests", "Schedules",
        "StatusCodes", "WorkerPool", "Logging", "Subprocess", "SystemPackage",
      ]
    ),

    // 6: assembly
    module(
      "EmulatorSuite",
      in: "Sources/Server",
      [
        "AuthAccounts", "AuthEmulator", "Console", "DataExport", "DatabaseModel", "DatabaseRules",
        "DatabaseTree",
        "Deployment", "DocumentModel", "DocumentStore", "EventLog", "Events", "FirestoreEmulator",
        "FirestoreProtos", "FirestoreWire", "FlowControl", "FunctionLogs", "FunctionsGateway",
        "HTTP2Server", "HTTPMessages", "HTTPSupport", "Identifiers", "Identity", "Invocation",
        "JSONText", "LibC", "Manifests", "QueryEngine", "RealtimeDatabaseEmulator",
        "SQLiteStorage", "SecurityRules", "StatusCodes", "StorageEngine", "TaskQueues",
        "TriggerDelivery", "VectorEmulator", "VectorIndex", "WorkerPool", "HTTPTypes",
        "Logging", "NIOCore", "ServiceLifecycle", "SwiftProtobuf",
      ]
    ),
  ]
}

/// Returns the modules of layer 7: the command line and the test support for function authors.
func topLayer() -> [Target] {
  [
    program(
      "HearthCLI",
      in: "Sources/Server",
      [
        "AuthAccounts", "CMemory", "DatabaseRules", "DatabaseTree", "Deployment", "DocumentModel",
        "EmulatorSuite", "FlowControl", "FunctionLogs", "HTTPMessages", "Identifiers", "Identity",
        "JSONText", "LibC", "Manifests",
        "OutboundHTTP", "ProductionPlan", "SecurityRules", "StatusCodes", "ArgumentParser",
        "Logging",
        "ServiceLifecycle",
        "Subprocess", "SystemPackage",
      ],
      // The files that `init` writes. Their sources are also targets, so that they are tested.
      resources: [
        .embedInCode("Templates/Dockerfile"), .embedInCode("Templates/Dockerfile.dockerignore"),
        .embedInCode("Templates/firestore.rules"),
        .embedInCode("Templates/.vscode/extensions.json"),
        .embedInCode("Templates/.vscode/launch.json"),
        .embedInCode("Templates/.vscode/tasks.json"),
        .embedInCode("Templates/Sources/Models/CallableName.swift"),
        .embedInCode("Templates/Sources/Models/Greeting.swift"),
        .embedInCode("Templates/Sources/Models/User.swift"),
        .embedInCode("Templates/Sources/Functions/WelcomeFunctions.swift"),
        .embedInCode("Templates/Sources/Worker/main.swift"),
        .embedInCode("Templates/Tests/FunctionsTests/RulesTests.swift"),
        .embedInCode("Templates/Tests/FunctionsTests/WelcomeTests.swift"),
      ]
    ),
    module(
      "FunctionsTesting",
      in: "Sources/Author",
      [
        "AuthAccounts", "AuthEmulator", "DatabaseModel", "DocumentModel", "DocumentStore",
        "EventLog", "Events", "FirestoreClient", "FirestoreEmulator", "FirestoreProtos",
        "FirestoreWire", "FlowControl",
        "FunctionsRuntime", "HTTPMessages", "HTTPSupport", "Identifiers", "Identity", "Invocation",
        "JSONText", "Manifests", "OutboundHTTP",
        "QueryEngine", "SecurityRules", "StatusCodes", "StorageEngine", "TaskQueueModel",
        "TriggerDelivery", "HTTPTypes", "Logging", "NIOCore", "ServiceLifecycle",
      ]
    ),
  ]
}

// MARK: - The application

/// Returns the targets of Psst, which uses only the public API.
func application() -> [Target] {
  [
    externalTarget("PsstModels", at: "functions/Models", ["FirestoreClient"]),
    externalTarget(
      "PsstServices",
      at: "functions/Services",
      [
        "PsstModels", "Cryptography", "DatabaseClient", "FirestoreClient", "OutboundHTTP",
        "AsyncAlgorithms", "Logging",
      ]
    ),
    externalTarget(
      "PsstBackend",
      at: "functions/Backend",
      [
        "PsstModels", "PsstServices", "Cryptography", "FirestoreClient", "OutboundHTTP", "Logging",
      ]
    ),
    externalTarget(
      "PsstFunctions",
      at: "functions",
      ["PsstModels", "PsstServices", "PsstBackend", "FirestoreClient", "FunctionsRuntime"],
      exclude: ["Models", "Services", "Backend", "Worker", "README.md"]
    ),
    .executableTarget(
      name: "PsstWorker",
      dependencies: targetDependencies([
        "PsstFunctions", "PsstBackend", "FirestoreClient", "FunctionsRuntime", "OutboundHTTP",
      ]),
      path: "functions/Worker",
      packageAccess: false,
      swiftSettings: strict()
    ),
  ]
}

/// Returns the targets that `hearth init` writes, built without our strict settings.
///
/// They have this package's `package` access, because only unsafe flags could name another package.
/// `InitTests` checks that they use nothing of Hearth but what is public.
func starter() -> [Target] {
  let templates = "Sources/Server/HearthCLI/Templates"
  return [
    .target(name: "StarterModels", path: "\(templates)/Sources/Models"),
    .target(
      name: "StarterFunctions",
      dependencies: targetDependencies(["StarterModels", "FirestoreClient", "FunctionsRuntime"]),
      path: "\(templates)/Sources/Functions",
      swiftSettings: inRelease(["-enable-testing"])
    ),
    .executableTarget(
      name: "StarterWorker",
      dependencies: targetDependencies(["StarterFunctions", "FirestoreClient", "FunctionsRuntime"]),
      path: "\(templates)/Sources/Worker"
    ),
    .testTarget(
      name: "StarterFunctionsTests",
      dependencies: targetDependencies(["StarterModels", "StarterFunctions", "FunctionsTesting"]),
      path: "\(templates)/Tests/FunctionsTests"
    ),
  ]
}

// MARK: - Tests

/// Returns the stand-ins for external systems in tests.
func testSupport() -> [Target] {
  [
    module(
      "TestSupport",
      in: "Tests",
      ["DocumentModel", "OutboundHTTP", "StorageEngine", "Logging"]
    ),
    module("DiskSimulation", in: "Tests", ["LibC", "CSQLite", "TestSupport"]),
    module("QueryModel", in: "Tests", ["DocumentModel", "TestSupport"]),
    module("OpenAIStub", in: "Tests", ["OutboundHTTP"]),
    module(
      "FuzzTargets",
      in: "Tests",
      [
        "DocumentModel", "DocumentStore", "EventLog", "FirestoreEmulator", "FirestoreProtos",
        "FirestoreWire", "HTTPMessages", "HTTPSupport", "Identity", "QueryEngine", "SecurityRules",
        "StatusCodes", "StorageEngine", "TestSupport", "HTTPTypes", "Logging", "NIOCore",
        "SwiftProtobuf",
      ],
      exclude: ["corpus.base64"]
    ),
    program(
      "OpenAIStubServer",
      in: "Tests",
      [
        "HTTPMessages", "HTTPSupport", "OpenAIStub", "ArgumentParser", "HTTPTypes", "Logging",
        "NIOCore", "ServiceLifecycle", "UnixSignals",
      ]
    ),
    .executableTarget(
      name: "PsstApp",
      dependencies: targetDependencies([
        "PsstModels", "PsstServices", "FirestoreClient", "OutboundHTTP", "ArgumentParser",
      ]),
      path: "Tests/PsstApp",
      packageAccess: false,
      swiftSettings: strict()
    ),
    program(
      "SampleFunctions",
      in: "Tests",
      ["LibC", "FirestoreClient", "FunctionsRuntime", "ServiceLifecycle", "UnixSignals"]
    ),
    program("XCTestSample", in: "Tests", ["FunctionsRuntime", "FunctionsTesting"]),
  ]
}

/// Returns the programs that `make bench` and `make fuzz` run.
///
/// Only those and `make tidy` set the variable, so that no other build compiles and links them.
func programsRunByHand() -> [Target] {
  guard Context.environment["HEARTH_ALL_TARGETS"] != nil else { return [] }
  return [
    program("Fuzz", in: "Tests", ["FuzzTargets"], exclude: ["words.dict"]),
    program(
      "Benchmarks",
      in: "Tests",
      [
        "LibC", "FirestoreProtos", "JSONText", "VectorIndex", "StorageEngine", "CKernels",
        "DocumentModel", "FirestoreClient", "Identity", "OutboundHTTP", "PsstModels",
        "PsstServices", "SecurityRules", "ArgumentParser",
        "NIOCore", "NIOPosix", "NIOHTTP1", "NIOHPACK", "SwiftProtobuf", "Subprocess",
        "SystemPackage",
        "UnixSignals",
      ],
      exclude: ["README.md", "requirements.txt"]
    ),
  ]
}

/// Returns the test targets by name: one for each module, and some that span several modules.
///
/// Each may import the modules that it tests, their dependencies, `TestSupport`, and its own list.
func testTargets() -> [Target] {
  [
    tests("AuthAccountsTests", and: ["Logging"]),
    tests("AuthEmulatorTests", and: ["EventLog", "Events", "StorageEngine"]),
    tests("ConsoleTests", and: ["NIOEmbedded"]),
    tests(
      "CrashTests",
      of: ["DocumentStore", "SQLiteStorage", "TriggerDelivery"],
      and: ["DiskSimulation"]
    ),
    tests("CryptographyTests"),
    tests(
      "DatabaseClientTests",
      and: [
        "AsyncAlgorithms", "DatabaseTree", "EventLog", "HTTPSupport", "Logging", "PsstModels",
        "PsstServices", "RealtimeDatabaseEmulator", "ServiceLifecycle", "StorageEngine",
      ]
    ),
    tests("DatabaseModelTests"),
    tests("DatabaseRulesTests"),
    tests("DatabaseTreeTests", and: ["SQLiteStorage"]),
    tests("DataExportTests", and: ["EventLog", "Identity", "Logging", "QueryEngine"]),
    tests("DeploymentTests", and: ["HTTPMessages", "HTTPTypes", "Invocation", "NIOCore"]),
    tests("DocumentModelTests"),
    tests("DocumentStoreTests"),
    tests("EmulatorSuiteTests", and: ["NIOCore", "NIOPosix", "Schedules"]),
    tests("EventLogTests"),
    tests("EventsTests"),
    tests("FirestoreClientTests"),
    tests(
      "FirestoreConformance",
      of: ["FirestoreEmulator", "DocumentStore"],
      and: ["FuzzTargets", "NIOEmbedded", "NIOHTTP2", "NIOPosix", "OutboundHTTP"]
    ),
    tests("FirestoreWireTests"),
    tests("FlowControlTests"),
    tests("FunctionLogsTests"),
    tests("FunctionsGatewayTests", and: ["NIOEmbedded"]),
    tests("FunctionsRuntimeTests", and: ["NIOPosix", "SampleFunctions"]),
    tests("FunctionsTestingTests", and: ["InvocationContext"]),
    tests("GoogleAccessTests"),
    tests(
      "HTTP2ServerTests",
      and: ["HTTPSupport", "NIOEmbedded", "NIOHTTP2", "NIOPosix", "ServiceLifecycle"]
    ),
    tests("HTTPSupportTests", and: ["NIOEmbedded"]),
    tests("HearthCLITests"),
    tests("IdentifiersTests"),
    tests("IdentityTests", and: ["InvocationContext"]),
    tests("InvocationContextTests"),
    tests("JSONTextTests"),
    tests("JSONTranscodingTests", and: ["FirestoreProtos"]),
    tests("JourneyTests", of: ["EmulatorSuite"], and: ["OutboundHTTP"]),
    tests("LinearRegexTests"),
    tests("OpenAIStubTests"),
    tests("OutboundHTTPTests", and: ["NIOCore", "NIOPosix"]),
    tests(
      "PsstTests",
      of: ["PsstFunctions"],
      and: [
        "DatabaseClient", "FirestoreProtos", "FunctionsTesting", "OpenAIStub", "OutboundHTTP",
        "PsstModels", "StatusCodes",
      ]
    ),
    tests("ProductionPlanTests"),
    tests("QueryEngineTests", and: ["QueryModel"]),
    tests(
      "RealtimeDatabaseEmulatorTests",
      and: ["DocumentModel", "EventLog", "NIOPosix", "StorageEngine"]
    ),
    tests("SchedulesTests"),
    tests(
      "SecurityRulesTests",
      exclude: ["expressions.json", "issues.json", "list_proofs.json", "look_up_paths.json"]
    ),
    tests("StatusCodesTests"),
    tests("StorageConformance", of: ["StorageEngine", "SQLiteStorage"]),
    tests(
      "StoreModelTests",
      of: ["FirestoreEmulator", "DocumentStore", "SQLiteStorage"],
      and: ["QueryModel"]
    ),
    tests("TaskQueuesTests", and: ["Identifiers"]),
    tests("TriggerDeliveryTests", and: ["SQLiteStorage"]),
    tests("VectorEmulatorTests", and: ["StorageEngine"]),
    tests("VectorIndexTests"),
    tests("WebChannelTests", and: ["Logging"]),
    tests("WorkerPoolTests"),
  ]
}

// MARK: - Target helpers

/// Returns the package of each product from other packages.
func products() -> [String: String] {
  [
    "ArgumentParser": "swift-argument-parser",
    "DequeModule": "swift-collections",
    "AsyncAlgorithms": "swift-async-algorithms",
    "HTTPTypes": "swift-http-types",
    "HeapModule": "swift-collections",
    "Logging": "swift-log",
    "NIOCore": "swift-nio",
    "NIOEmbedded": "swift-nio",
    "NIOHPACK": "swift-nio-http2",
    "NIOHTTP1": "swift-nio",
    "NIOHTTP2": "swift-nio-http2",
    "NIOPosix": "swift-nio",
    "NIOWebSocket": "swift-nio",
    "ServiceLifecycle": "swift-service-lifecycle",
    "Subprocess": "swift-subprocess",
    "SwiftProtobuf": "swift-protobuf",
    "SystemPackage": "swift-system",
    "UnixSignals": "swift-service-lifecycle",
  ]
}

func strict() -> [SwiftSetting] {
  [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
  ] + inRelease(["-enable-testing"])
}

/// Returns flags for release builds, so that one build serves users and tests.
///
/// A checkout of SwiftPM, which is another package's dependency, may not set flags and has no tests.
func inRelease(_ flags: [String]) -> [SwiftSetting] {
  let folders = ["/.build/checkouts/", "/SourcePackages/checkouts/"]
  guard !folders.contains(where: Context.packageDirectory.contains) else { return [] }
  return [.unsafeFlags(flags, .when(configuration: .release))]
}

/// Returns dependencies by name: products of other packages and targets of this package.
///
/// iOS has neither libcurl nor OpenSSL: `OutboundHTTP` uses `URLSession` there, and Psst CryptoKit.
func targetDependencies(_ names: [String]) -> [Target.Dependency] {
  names.map { name in
    if ["CCurl", "COpenSSL", "Cryptography"].contains(name) {
      return .target(name: name, condition: .when(platforms: [.linux, .macOS]))
    }
    return products()[name].map { .product(name: name, package: $0) } ?? .target(name: name)
  }
}

/// Returns a library of the package, in a folder of the same name.
func module(
  _ name: String,
  in folder: String,
  _ dependencies: [String] = [],
  onLinux linuxProducts: [String] = [],
  exclude: [String] = [],
  resources: [Resource]? = nil
) -> Target {
  .target(
    name: name,
    dependencies: targetDependencies(dependencies)
      + linuxProducts.map { name in
        .product(
          name: name,
          package: products()[name] ?? name,
          condition: .when(platforms: [.linux])
        )
      },
    path: "\(folder)/\(name)",
    exclude: exclude,
    resources: resources,
    swiftSettings: strict()
  )
}

/// Returns an executable of the package.
func program(
  _ name: String,
  in folder: String,
  _ dependencies: [String],
  exclude: [String] = [],
  resources: [Resource]? = nil
) -> Target {
  .executableTarget(
    name: name,
    dependencies: targetDependencies(dependencies),
    path: "\(folder)/\(name)",
    exclude: exclude,
    resources: resources,
    swiftSettings: strict()
  )
}

/// Returns a library that cannot see declarations with `package` access.
func externalTarget(
  _ name: String,
  at path: String,
  _ dependencies: [String],
  exclude: [String] = []
) -> Target {
  .target(
    name: name,
    dependencies: targetDependencies(dependencies),
    path: path,
    exclude: exclude,
    packageAccess: false,
    swiftSettings: strict()
  )
}

/// Returns the tests of one or more modules; without a list, the module is derived from the name.
func tests(
  _ name: String,
  of tested: [String] = [],
  and others: [String] = [],
  exclude: [String] = []
) -> Target {
  let tested = tested.isEmpty ? [String(name.dropLast("Tests".count))] : tested
  let known = modules() + topLayer() + application() + testSupport()
  let inherited = known.filter { tested.contains($0.name) }.flatMap(\.dependencies).map(\.name)
  let all = Set(tested + inherited + others + ["TestSupport"])
  return .testTarget(
    name: name,
    dependencies: targetDependencies(all.sorted()),
    path: "Tests/\(name)",
    exclude: exclude,
    // Only what is tested has to be optimized.
    swiftSettings: strict() + inRelease(["-Onone"])
  )
}

extension Target.Dependency {
  /// The name of the target or product.
  var name: String {
    switch self {
    case .targetItem(let name, _), .byNameItem(let name, _): name
    case .productItem(let name, _, _, _): name
    @unknown default: fatalError("a dependency of a kind that this manifest does not use")
    }
  }
}
