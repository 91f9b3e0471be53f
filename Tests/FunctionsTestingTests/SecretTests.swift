import FunctionsTesting
import OutboundHTTP
import Testing

/// The example of a secret in `docs/functions.md`, with its test.
@Suite("A secret in a test")
struct SecretTests {
  struct Forecast: Codable, Sendable, Equatable { var text: String }
  struct Place: Codable, Sendable { var name: String }

  struct WeatherFunctions: Sendable {
    let environment: [String: String]
    let http: any HTTPTransport

    var app: FunctionsApp {
      FunctionsApp { forecast }
    }

    var forecast: OnCall<Place, Forecast> {
      .init("forecast", callers: .users, options: .init(secrets: ["WEATHER_KEY"])) { request in
        guard let key = environment["WEATHER_KEY"] else {
          throw CallableError(.failedPrecondition, "The server lacks the key of the weather.")
        }
        let reply = try await http.send(
          OutboundRequest(
            method: "GET",
            url: "https://weather.example/v1/\(request.data.name)",
            headers: ["authorization": "Bearer \(key)"]
          )
        )
        return Forecast(text: reply.text)
      }
    }
  }

  @Test("A function under test reads the secret that the test gives it")
  func given() async throws {
    try await withFunctions(\.app, environment: ["WEATHER_KEY": "key-of-a-test"]) { environment in
      WeatherFunctions(environment: environment.variables, http: environment.http)
    } test: { suite, functions in
      suite.http.on("GET", "https://weather.example/v1/Berlin").respond(body: "Sun")

      let forecast = try await suite.call(functions.forecast, Place(name: "Berlin"), as: "tina")
      #expect(forecast == Forecast(text: "Sun"))
      let sent = suite.http.requests("GET", "https://weather.example/v1/Berlin")
      #expect(sent.map { $0.headers["authorization"] } == ["Bearer key-of-a-test"])
    }
  }

  @Test("A function whose secret is not set says so")
  func missing() async throws {
    try await withFunctions(\.app) { environment in
      WeatherFunctions(environment: environment.variables, http: environment.http)
    } test: { suite, functions in
      let error = await #expect(throws: CallableError.self) {
        try await suite.call(functions.forecast, Place(name: "Berlin"), as: "tina")
      }
      #expect(error?.code == .failedPrecondition)
    }
  }
}
