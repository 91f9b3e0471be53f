import HTTPSupport
import Identity
import Logging
import Testing

@testable import FunctionsRuntime

@Suite("Worker settings")
struct WorkerSettingsTests {
  @Test(
    "The Functions Framework's flags come before the variables, and other arguments are ignored"
  )
  func flags() throws {
    let environment = ["PORT": "1", "FUNCTION_TARGET": "f", "FUNCTION_SIGNATURE_TYPE": "http"]
    let settings = try WorkerSettings(
      environment: environment,
      arguments: [
        "-verbose", "--port", "8081", "--target=g", "x", "--signature-type", "cloudevent",
      ]
    )
    #expect(settings.address == .tcp(host: "127.0.0.1", port: 8081))
    #expect(settings.target == "g" && settings.signature == .cloudevent)
    #expect(throws: InvalidSettingsError("--target needs a value.")) {
      try WorkerSettings(environment: environment, arguments: ["--target"])
    }
  }

  @Test("A worker of Hearth listens on its socket, believes the emulator and ends with its server")
  func hearth() throws {
    let settings = try WorkerSettings(environment: [
      "HEARTH_SOCKET": "/tmp/x.sock", "PORT": "1", "FUNCTION_TARGET": "f",
      "FUNCTIONS_EMULATOR": "true", "LOG_LEVEL": "DEBUG",
    ])

    #expect(settings.address == .unixSocket(path: "/tmp/x.sock"))
    #expect(settings.target == "f")
    #expect(settings.credentialMode == .emulator)
    #expect(settings.endsWithStandardInput)
    #expect(settings.logLevel == .debug)
    #expect(settings.manifestPath == nil)
  }

  @Test("On Cloud Run the port is open to the outside and no token is believed")
  func cloudRun() throws {
    let settings = try WorkerSettings(environment: ["PORT": "8081", "K_SERVICE": "f"])

    #expect(settings.address == .tcp(host: "0.0.0.0", port: 8081))
    #expect(settings.credentialMode == .production)
    #expect(!settings.endsWithStandardInput)
  }

  @Test("The environment variables of the Functions Framework are adopted")
  func framework() throws {
    let settings = try WorkerSettings(environment: [
      "FUNCTION_SIGNATURE_TYPE": "cloudevent", "CLOUD_RUN_TIMEOUT_SECONDS": "300",
      "FUNCTIONS_CONTROL_API": "true", "GCLOUD_PROJECT": "p",
    ])

    #expect(settings.signature == .cloudevent)
    #expect(settings.requestTimeMax == .seconds(300))
    #expect(settings.hasControlAPI)
    #expect(settings.project == "p")
  }

  @Test("Anywhere else only this machine can connect")
  func elsewhere() throws {
    for environment in [
      [:], ["PORT": ""], ["K_SERVICE": "f", "FUNCTIONS_EMULATOR": "true"],
    ] {
      let settings = try WorkerSettings(environment: environment)

      #expect(settings.address == .tcp(host: "127.0.0.1", port: 8080))
      #expect(settings.logLevel == .info)
      #expect(settings.target == nil)
    }
  }

  @Test(
    "The project is that of the first variable that names one",
    arguments: [
      ([:], nil),
      (["GCLOUD_PROJECT": "a", "GOOGLE_CLOUD_PROJECT": "b"], "a"),
      (["GCLOUD_PROJECT": "", "GOOGLE_CLOUD_PROJECT": "b"], "b"),
      (["FIREBASE_CONFIG": #"{"projectId":"c","storageBucket":"x"}"#], "c"),
      (["FIREBASE_CONFIG": "/a/file.json"], nil),
    ] as [([String: String], String?)]
  )
  func project(environment: [String: String], project: String?) throws {
    #expect(try WorkerSettings(environment: environment).project == project)
  }

  @Test(
    "The emulator's debug features count in its debug mode only",
    arguments: [
      ("true", #"{"skipTokenVerification":true,"enableCors":true}"#, true),
      ("false", #"{"enableCors":true}"#, false), ("true", #"{"enableCors":false}"#, false),
      ("true", "nonsense", false),
    ]
  )
  func debugFeatures(mode: String, features: String, enablesCORS: Bool) throws {
    let settings = try WorkerSettings(environment: [
      "FIREBASE_DEBUG_MODE": mode, "FIREBASE_DEBUG_FEATURES": features,
    ])

    #expect(settings.debugFeatures.enablesCORS == enablesCORS)
  }

  @Test(
    "Nonsense is refused by name",
    arguments: [
      ("PORT", "x"), ("PORT", "65536"), ("PORT", "-1"), ("LOG_LEVEL", "loud"),
      ("FUNCTION_SIGNATURE_TYPE", "grpc"), ("CLOUD_RUN_TIMEOUT_SECONDS", "0"),
      ("CLOUD_RUN_TIMEOUT_SECONDS", "1.5"),
    ]
  )
  func nonsense(name: String, value: String) {
    let error = #expect(throws: InvalidSettingsError.self) {
      try WorkerSettings(environment: [name: value])
    }
    #expect(error?.description.hasPrefix("\(name) is \"\(value)\"") == true)
  }
}
