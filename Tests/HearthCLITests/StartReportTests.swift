import EmulatorSuite
import Testing

@testable import HearthCLI

@Suite("Report of the start")
struct StartReportTests {
  private func lines(_ regions: [String?]) -> [Substring] {
    let functions = regions.enumerated().map { index, region in
      FunctionDescription(
        name: "f\(index)",
        kind: region == nil ? .trigger : .callable,
        trigger: region == nil ? "created a/{b}" : nil,
        url: region.map { "http://127.0.0.1:5001/demo-test/\($0)/f\(index)" }
      )
    }
    let suite = SuiteDescription(
      project: "demo-test",
      pid: 1,
      services: ["functions": ServiceAddress(host: "127.0.0.1", port: 5001)]
    )
    return StartReport.functionsInApp(suite, functions).split(separator: "\n")
  }

  @Test("The app asks for the functions' own regions, each once")
  func regions() {
    let address = #".useEmulator(withHost: "127.0.0.1", port: 5001)"#
    let usual = "  Functions.functions()\(address)"
    let european = #"  Functions.functions(region: "europe-west1")\#(address)"#

    #expect(lines([]) == [usual[...]])
    #expect(lines([nil]) == [usual[...]])
    #expect(lines(["us-central1", "us-central1"]) == [usual[...]])
    #expect(lines(["europe-west1", nil, "europe-west1"]) == [european[...]])
    #expect(lines(["us-central1", "europe-west1"]) == [european[...], usual[...]])
  }
}
