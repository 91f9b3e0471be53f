// swift-tools-version: 6.2
// Every room and every edge of the house. `swift package tidy` holds the sources to this list.

import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

func room(
  _ name: String,
  in folder: String,
  _ dependencies: [Target.Dependency] = [],
  packageAccess: Bool = true,
  exclude: [String] = []
) -> Target {
  .target(
    name: name,
    dependencies: dependencies,
    path: "\(folder)/\(name)",
    exclude: exclude,
    packageAccess: packageAccess,
    swiftSettings: strict
  )
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(
    name: name,
    dependencies: dependencies,
    path: "Tests/\(name)",
    swiftSettings: strict
  )
}

let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioHTTP2: Target.Dependency = .product(name: "NIOHTTP2", package: "swift-nio-http2")
let nioHPACK: Target.Dependency = .product(name: "NIOHPACK", package: "swift-nio-http2")
let nioHTTPTypes: Target.Dependency = .product(name: "NIOHTTPTypes", package: "swift-nio-extras")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(
  name: "ServiceLifecycle",
  package: "swift-service-lifecycle"
)
let unixSignals: Target.Dependency = .product(
  name: "UnixSignals",
  package: "swift-service-lifecycle"
)
let subprocess: Target.Dependency = .product(name: "Subprocess", package: "swift-subprocess")
let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")
let deque: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let heap: Target.Dependency = .product(name: "HeapModule", package: "swift-collections")
let jwtKit: Target.Dependency = .product(name: "JWTKit", package: "jwt-kit")
let argumentParser: Target.Dependency = .product(
  name: "ArgumentParser",
  package: "swift-argument-parser"
)

let package = Package(
  name: "hearth",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "hearth", targets: ["HearthCLI"]),
    .executable(name: "psst-functions", targets: ["PsstWorker"]),
    .executable(name: "openai-stub", targets: ["OpenAIStubServer"]),
    .library(name: "FunctionsRuntime", targets: ["FunctionsRuntime"]),
    .library(name: "FirestoreClient", targets: ["FirestoreClient"]),
    .library(name: "OutboundHTTP", targets: ["OutboundHTTP"]),
    .library(name: "FunctionsTesting", targets: ["FunctionsTesting"]),
    .plugin(name: "tidy", targets: ["Tidy"]),
  ],
  dependencies: [
    // Sockets and event loops; nothing of ours could be as well tested.
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    // HPACK under our gRPC server; its framing is the client of the tests.
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    // The parts of requests and responses on Hummingbird's connections, which depends on it anyway.
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    // HTTP/1.1 connections, requests, responses and the router of the control API.
    .package(
      url: "https://github.com/hummingbird-project/hummingbird",
      from: "2.28.1",
      traits: []
    ),
    // Currency types of HTTP requests and responses, shared with Hummingbird.
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    // The Firestore messages, binary and JSON.
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    // The command line: parsing, help and completions.
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    // The logging interface that the whole ecosystem shares.
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    // Ordered start, signals and graceful shutdown of long-lived services.
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    // Child processes with async streams and process groups on every platform.
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
    // File paths as swift-subprocess takes them.
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    // Double-ended queues and heaps.
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    // Signed tokens: checking those of users, making those of service accounts.
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
  ],
  targets: [
    // Floor 0: C
    .systemLibrary(
      name: "CSQLite",
      path: "Sources/CSQLite",
      pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]
    ),
    .systemLibrary(
      name: "CCurl",
      path: "Sources/CCurl",
      pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]
    ),
    // gzip for gRPC's messages; on every system, and curl needs it already.
    .systemLibrary(
      name: "CZlib",
      path: "Sources/CZlib",
      pkgConfig: "zlib",
      providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]
    ),
    .target(name: "CKernels", path: "Sources/CKernels", cSettings: [.unsafeFlags(["-O3"])]),

    // Floor 1: plain values
    room("DocumentModel", in: "Sources"),
    room("RuntimeSupport", in: "Sources", [logging]),
    room("FirestoreProtos", in: "Sources", [protobuf], exclude: ["README.md", "Definitions"]),

    // Floor 2: contracts
    room("Identity", in: "Sources", ["RuntimeSupport", jwtKit]),
    room("Events", in: "Sources", ["DocumentModel", "RuntimeSupport"]),
    room("StorageEngine", in: "Sources", ["RuntimeSupport"]),
    room("OutboundHTTP", in: "Sources", ["CCurl", "RuntimeSupport"]),

    // Floor 3: contracts in use
    room(
      "QueryEngine",
      in: "emulator/Firestore",
      ["DocumentModel", "Events", "StorageEngine", "RuntimeSupport", logging]
    ),
    room(
      "VectorIndex",
      in: "emulator/Vectors",
      ["CKernels", "DocumentModel", "StorageEngine", "RuntimeSupport"]
    ),
    room(
      "Invocation",
      in: "Sources",
      ["DocumentModel", "Events", "Identity", "RuntimeSupport", httpTypes, nioCore, logging]
    ),
    room(
      "EventLog",
      in: "Sources",
      [
        "DocumentModel", "Events", "Identity", "StorageEngine", "RuntimeSupport", deque,
        lifecycle, logging,
      ]
    ),
    room(
      "HTTPSupport",
      in: "Sources",
      [
        "RuntimeSupport", "Identity", hummingbird, hummingbirdCore, httpTypes, nioCore, nioPosix,
        nioHTTP1, nioHTTPTypes, lifecycle, logging,
      ]
    ),
    room(
      "GRPCServer",
      in: "Sources",
      [
        "CZlib", "RuntimeSupport", protobuf, hummingbirdCore, httpTypes, nioCore, nioHPACK, deque,
        logging,
      ]
    ),
    room(
      "FirestoreWire",
      in: "Sources",
      ["DocumentModel", "FirestoreProtos", "Events", "RuntimeSupport", protobuf]
    ),
    room(
      "SQLiteStorage",
      in: "Sources",
      ["CSQLite", "StorageEngine", "RuntimeSupport", logging]
    ),
    room("Schedules", in: "triggers", ["DocumentModel", "RuntimeSupport"]),
    room("GoogleAccess", in: "Sources", ["OutboundHTTP", "RuntimeSupport", jwtKit]),

    // Floor 4: engines
    room(
      "DocumentStore",
      in: "emulator/Firestore",
      [
        "DocumentModel", "StorageEngine", "EventLog", "Events", "Identity", "QueryEngine",
        "RuntimeSupport", lifecycle, logging,
      ]
    ),
    room(
      "TriggerMatching",
      in: "triggers",
      ["DocumentModel", "Events", "Invocation", "RuntimeSupport"]
    ),
    room(
      "WorkerPool",
      in: "Sources",
      [
        "Invocation", "RuntimeSupport", "Events", httpTypes, nioCore, nioPosix, nioHTTP1,
        subprocess, system, deque, lifecycle, logging,
      ]
    ),
    room(
      "FirestoreClient",
      in: "Sources",
      [
        "DocumentModel", "FirestoreProtos", "FirestoreWire", "GoogleAccess", "OutboundHTTP",
        "RuntimeSupport", protobuf,
      ]
    ),

    // Floor 5: services
    room(
      "FirestoreEmulator",
      in: "emulator/Firestore",
      [
        "DocumentModel", "DocumentStore", "FirestoreProtos", "FirestoreWire", "GRPCServer",
        "HTTPSupport", "Identity", "RuntimeSupport", protobuf, hummingbirdCore, httpTypes, nioCore,
        nioHPACK, logging,
      ]
    ),
    room(
      "DataExport",
      in: "emulator",
      [
        "DocumentModel", "DocumentStore", "FirestoreProtos", "FirestoreWire", "RuntimeSupport",
        "StorageEngine", "VectorIndex", protobuf,
      ]
    ),
    room(
      "VectorEmulator",
      in: "emulator/Vectors",
      [
        "VectorIndex", "StorageEngine", "HTTPSupport", "RuntimeSupport", hummingbird,
        hummingbirdCore, httpTypes, nioCore, lifecycle, logging,
      ]
    ),
    room(
      "TriggerDelivery",
      in: "triggers",
      [
        "TriggerMatching", "EventLog", "Events", "Invocation", "Schedules", "StorageEngine",
        "DocumentModel", "FirestoreWire", "Identity", "RuntimeSupport", httpTypes, protobuf,
        nioCore, deque, heap, lifecycle, logging,
      ]
    ),
    room(
      "TaskQueues",
      in: "triggers",
      [
        "DocumentModel", "HTTPSupport", "Invocation", "RuntimeSupport", hummingbirdCore, httpTypes,
        nioCore, logging,
      ]
    ),
    room(
      "FunctionsGateway",
      in: "Sources",
      [
        "Invocation", "HTTPSupport", "RuntimeSupport", hummingbird, hummingbirdCore, httpTypes,
        nioCore, lifecycle, logging,
      ]
    ),
    room(
      "FunctionsRuntime",
      in: "Sources",
      [
        "DocumentModel", "Events", "FirestoreProtos", "FirestoreWire", "GoogleAccess",
        "HTTPSupport", "Identity",
        "Invocation", "OutboundHTTP", "RuntimeSupport", "Schedules", protobuf, hummingbirdCore,
        httpTypes, nioCore, lifecycle, unixSignals, logging,
      ]
    ),
    room(
      "Deployment",
      in: "Sources",
      [
        "Events", "Invocation", "WorkerPool", "RuntimeSupport", "Schedules", subprocess, system,
        logging,
      ]
    ),

    // Floor 6: assembly
    room(
      "EmulatorSuite",
      in: "Sources",
      [
        "DataExport", "Deployment", "DocumentModel", "DocumentStore", "EventLog", "Events",
        "FirestoreEmulator", "FunctionsGateway", "GRPCServer", "HTTPSupport", "Identity",
        "Invocation", "RuntimeSupport", "SQLiteStorage", "StorageEngine", "TaskQueues",
        "TriggerDelivery", "TriggerMatching", "VectorEmulator",
        "FirestoreProtos", "QueryEngine", "VectorIndex", "FirestoreWire", "WorkerPool", hummingbird,
        hummingbirdCore, httpTypes, nioCore, lifecycle, protobuf,
        logging,
      ]
    ),

    // Floor 7: doors
    .executableTarget(
      name: "HearthCLI",
      dependencies: [
        "Deployment", "EmulatorSuite", "Identity", "Invocation", "OutboundHTTP", "RuntimeSupport",
        argumentParser, lifecycle, unixSignals, subprocess, logging,
      ],
      path: "Sources/HearthCLI",
      // What `init` writes; its sources are targets of their own as well, so that they are tested.
      resources: [
        .embedInCode("Templates/Dockerfile"), .embedInCode("Templates/Dockerfile.dockerignore"),
        .embedInCode("Templates/StarterFunctions/WelcomeFunctions.swift"),
        .embedInCode("Templates/StarterWorker/main.swift"),
        .embedInCode("Templates/StarterFunctionsTests/WelcomeTests.swift"),
      ],
      swiftSettings: strict
    ),

    room(
      "FunctionsTesting",
      in: "Sources",
      [
        "DocumentModel", "DocumentStore", "EventLog", "Events", "FirestoreClient",
        "FirestoreEmulator", "FirestoreProtos", "FunctionsRuntime", "HTTPSupport", "Identity",
        "Invocation", "OutboundHTTP", "QueryEngine", "RuntimeSupport", "StorageEngine",
        "TriggerDelivery", httpTypes, nioCore, lifecycle, logging,
      ]
    ),

    // The application. `packageAccess: false`: it uses only what a stranger could.
    .target(
      name: "PsstModels",
      dependencies: ["FirestoreClient"],
      path: "functions/Models",
      packageAccess: false,
      swiftSettings: strict
    ),
    .target(
      name: "PsstServices",
      dependencies: ["PsstModels", "FirestoreClient", "OutboundHTTP"],
      path: "functions/Services",
      packageAccess: false,
      swiftSettings: strict
    ),
    .target(
      name: "PsstFunctions",
      dependencies: ["PsstModels", "PsstServices", "FirestoreClient", "FunctionsRuntime"],
      path: "functions",
      exclude: ["Models", "Services", "Worker"],
      packageAccess: false,
      swiftSettings: strict
    ),
    .executableTarget(
      name: "PsstWorker",
      dependencies: [
        "PsstFunctions", "PsstServices", "FirestoreClient", "FunctionsRuntime", "OutboundHTTP",
      ],
      path: "functions/Worker",
      packageAccess: false,
      swiftSettings: strict
    ),

    // Tests, and what stands in for the world in them
    room("TestSupport", in: "Tests", ["RuntimeSupport", "StorageEngine", logging]),
    room("OpenAIStub", in: "Tests", ["OutboundHTTP"]),
    .executableTarget(
      name: "OpenAIStubServer",
      dependencies: [
        "OpenAIStub", "HTTPSupport", argumentParser, httpTypes, hummingbirdCore, nioCore, lifecycle,
        unixSignals, logging,
      ],
      path: "Tests/OpenAIStubServer",
      swiftSettings: strict
    ),
    tests("OpenAIStubTests", ["OpenAIStub", "OutboundHTTP"]),
    room("DiskSimulation", in: "Tests", ["CSQLite", "TestSupport"]),
    tests("DocumentModelTests", ["DocumentModel", "TestSupport"]),
    tests("RuntimeSupportTests", ["RuntimeSupport", "TestSupport"]),
    tests("IdentityTests", ["Identity", "RuntimeSupport", "TestSupport", jwtKit]),
    tests(
      "StorageConformance",
      ["StorageEngine", "SQLiteStorage", "RuntimeSupport", "TestSupport"]
    ),
    tests(
      "CrashTests",
      [
        "DiskSimulation", "SQLiteStorage", "CSQLite", "StorageEngine", "RuntimeSupport",
        "DocumentStore", "QueryEngine", "EventLog", "Events", "Identity", "DocumentModel",
        "TriggerDelivery", "Invocation", "TestSupport", httpTypes, nioCore, logging,
      ]
    ),
    tests(
      "EventLogTests",
      [
        "EventLog", "StorageEngine", "DocumentModel", "Events", "Identity", "TestSupport",
        lifecycle,
      ]
    ),
    tests(
      "QueryEngineTests",
      [
        "QueryEngine", "StorageEngine", "DocumentModel", "Events", "RuntimeSupport", "TestSupport",
        logging,
      ]
    ),
    tests(
      "DocumentStoreTests",
      [
        "DocumentStore", "QueryEngine", "EventLog", "StorageEngine", "DocumentModel", "Events",
        "Identity", "RuntimeSupport", "TestSupport", logging,
      ]
    ),
    tests(
      "GRPCServerTests",
      [
        "GRPCServer", "HTTPSupport", "RuntimeSupport", "TestSupport", hummingbirdCore, httpTypes,
        protobuf, nioCore, nioPosix, nioEmbedded, nioHTTP2, nioHPACK, lifecycle, logging,
      ]
    ),
    tests(
      "HTTPSupportTests",
      [
        "HTTPSupport", "RuntimeSupport", "TestSupport", hummingbirdCore, httpTypes, nioCore,
        nioPosix, nioEmbedded, lifecycle, logging,
      ]
    ),
    tests(
      "FirestoreWireTests",
      [
        "FirestoreWire", "FirestoreProtos", "DocumentModel", "Events", "RuntimeSupport", protobuf,
        "TestSupport",
      ]
    ),
    tests(
      "FirestoreConformance",
      [
        "FirestoreEmulator", "FirestoreProtos", "DocumentStore", "QueryEngine", "EventLog",
        "StorageEngine", "DocumentModel", "HTTPSupport", "Identity", "OutboundHTTP",
        "RuntimeSupport", protobuf, httpTypes, nioCore, nioPosix, nioHTTP2, nioHPACK, lifecycle,
        logging,
        "TestSupport",
      ]
    ),
    tests(
      "FunctionsRuntimeTests",
      [
        "FunctionsRuntime", "SampleFunctions", "DocumentModel", "Events", "FirestoreProtos",
        "FirestoreWire", "GoogleAccess", "HTTPSupport", "Identity", "Invocation", "OutboundHTTP",
        "RuntimeSupport",
        "TestSupport",
        protobuf, httpTypes, nioCore, nioPosix, logging,
      ]
    ),
    tests(
      "WorkerPoolTests",
      [
        "WorkerPool", "Invocation", "RuntimeSupport", "TestSupport", httpTypes, nioCore, nioPosix,
        nioHTTP1, logging,
      ]
    ),
    tests(
      "FunctionsGatewayTests",
      [
        "FunctionsGateway", "HTTPSupport", "Invocation", "RuntimeSupport", "TestSupport",
        hummingbirdCore, httpTypes, nioCore, nioEmbedded, logging,
      ]
    ),
    tests(
      "DeploymentTests",
      [
        "Deployment", "WorkerPool", "Invocation", "RuntimeSupport", "TestSupport", httpTypes,
        nioCore, logging,
      ]
    ),
    tests("GoogleAccessTests", ["GoogleAccess", "OutboundHTTP", "RuntimeSupport", "TestSupport"]),
    tests("OutboundHTTPTests", ["OutboundHTTP", "TestSupport", nioCore, nioPosix]),
    tests(
      "FirestoreClientTests",
      ["FirestoreClient", "DocumentModel", "GoogleAccess", "OutboundHTTP", "TestSupport"]
    ),
    tests(
      "PsstTests",
      [
        "PsstFunctions", "PsstServices", "PsstModels", "FirestoreClient", "FirestoreProtos",
        "FunctionsRuntime", "FunctionsTesting", "OpenAIStub", "OutboundHTTP", "TestSupport",
      ]
    ),
    tests(
      "FunctionsTestingTests",
      [
        "FunctionsTesting", "EventLog", "FirestoreClient", "FunctionsRuntime", "OutboundHTTP",
        "StorageEngine", "TestSupport",
      ]
    ),
    tests("EventsTests", ["Events", "DocumentModel", "RuntimeSupport"]),
    tests("SchedulesTests", ["Schedules", "DocumentModel", "RuntimeSupport", "TestSupport"]),
    tests(
      "TriggerMatchingTests",
      ["TriggerMatching", "Invocation", "Events", "DocumentModel", "RuntimeSupport"]
    ),
    tests(
      "TriggerDeliveryTests",
      [
        "TriggerDelivery", "TriggerMatching", "EventLog", "Invocation", "StorageEngine", "Events",
        "DocumentModel", "Identity", "RuntimeSupport", "TestSupport", httpTypes, nioCore, lifecycle,
        logging,
      ]
    ),
    tests(
      "TaskQueuesTests",
      [
        "TaskQueues", "DocumentModel", "HTTPSupport", "Invocation", "RuntimeSupport",
        hummingbirdCore, httpTypes, nioCore, logging,
      ]
    ),
    tests(
      "DataExportTests",
      [
        "DataExport", "DocumentModel", "DocumentStore", "EventLog", "Identity", "QueryEngine",
        "RuntimeSupport", "StorageEngine", "TestSupport", "VectorIndex", logging,
      ]
    ),
    tests("VectorIndexTests", ["VectorIndex", "StorageEngine", "RuntimeSupport", "TestSupport"]),
    tests(
      "VectorEmulatorTests",
      [
        "VectorEmulator", "VectorIndex", "StorageEngine", "TestSupport", hummingbirdCore, httpTypes,
        nioCore, logging,
      ]
    ),
    tests(
      "EmulatorSuiteTests",
      [
        "EmulatorSuite", "DocumentModel", "Events", "HTTPSupport", "Invocation", "RuntimeSupport",
        "TestSupport", hummingbirdCore, httpTypes, nioCore,
      ]
    ),
    tests("JourneyTests", ["EmulatorSuite", "OutboundHTTP", "TestSupport"]),
    .executableTarget(
      name: "SampleFunctions",
      dependencies: ["FirestoreClient", "FunctionsRuntime"],
      path: "Tests/SampleFunctions",
      swiftSettings: strict
    ),
    // What `hearth init` writes, built as a stranger's package is.
    .target(
      name: "StarterFunctions",
      dependencies: ["FirestoreClient", "FunctionsRuntime"],
      path: "Sources/HearthCLI/Templates/StarterFunctions",
      packageAccess: false
    ),
    .executableTarget(
      name: "StarterWorker",
      dependencies: ["StarterFunctions", "FirestoreClient", "FunctionsRuntime"],
      path: "Sources/HearthCLI/Templates/StarterWorker",
      packageAccess: false
    ),
    .testTarget(
      name: "StarterFunctionsTests",
      dependencies: ["StarterFunctions", "FunctionsTesting"],
      path: "Sources/HearthCLI/Templates/StarterFunctionsTests",
      packageAccess: false
    ),
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "FirestoreProtos", "VectorIndex", "StorageEngine", "CKernels", argumentParser, nioCore,
        nioPosix, nioHTTP1, nioHPACK, protobuf, subprocess, system, unixSignals,
      ],
      path: "Tests/Benchmarks",
      exclude: ["README.md", "requirements.txt"],
      swiftSettings: strict
    ),

    // Keeps the house: undeclared imports, floors, files that no target owns.
    .plugin(
      name: "Tidy",
      capability: .command(
        intent: .custom(verb: "tidy", description: "Check imports, floors and stray files")
      ),
      path: "Sources/Plugins/Tidy"
    ),
  ]
)
