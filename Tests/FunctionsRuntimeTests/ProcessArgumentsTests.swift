import Testing

@testable import FunctionsRuntime

@Suite("Arguments of a functions executable")
struct ProcessArgumentsTests {
  @Test(
    "Its own flags, and those of Xcode, let it serve",
    arguments: [
      [], ["--port", "1", "--target=f"], ["--signature-type", "http"], ["--port", "--help-not"],
      ["-NSDocumentRevisionsDebugMode", "YES", "-ApplePersistenceIgnoreState", "YES"],
    ]
  )
  func serves(arguments: [String]) {
    #expect(ProcessArguments(arguments) == .serve)
  }

  @Test(
    "Help is given wherever it is asked for",
    arguments: [["--help"], ["-h"], ["--port", "1", "--help"], ["x", "-h"]]
  )
  func help(arguments: [String]) {
    #expect(ProcessArguments(arguments) == .help)
  }

  @Test("Any other argument is refused by name", arguments: ["--prot", "x", "--prot=1", ""])
  func unknown(argument: String) {
    #expect(ProcessArguments(["--port", "1", argument, "y"]) == .unknown(argument))
  }

  @Test("The help names each function with its kind, and the variables that matter")
  func text() {
    let app = FunctionsApp {
      OnCall<FirestoreValue, _>("second") { _ in }
      OnTaskDispatched<FirestoreValue>("first") { _ in }
    }
    let text = app.help(program: "psst")

    #expect(text.hasPrefix("psst: "))
    #expect(text.hasSuffix("Functions (2):\n  first   task queue\n  second  callable"))
    for variable in ["PORT", "FUNCTION_TARGET", "HEARTH_HUB", "LOG_LEVEL"] {
      #expect(text.contains(variable))
    }
  }
}
