import HTTPSupport
import Identity
import Logging
import Testing

@testable import FunctionsRuntime

@Suite("Worker settings")
struct WorkerSettingsTests {
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
    "Nonsense is refused by name",
    arguments: [("PORT", "x"), ("PORT", "65536"), ("PORT", "-1"), ("LOG_LEVEL", "loud")]
  )
  func nonsense(name: String, value: String) {
    let error = #expect(throws: InvalidSettings.self) {
      try WorkerSettings(environment: [name: value])
    }
    #expect(error?.description.hasPrefix("\(name) is \"\(value)\"") == true)
  }
}
