import ArgumentParser
import Testing

@testable import HearthCLI

@Suite("Wrong command lines")
struct WrongCommandLineTests {
  private func explanation(_ line: String, _ complaint: String) -> String? {
    WrongCommandLine.explanation(
      of: line.split(separator: " ").map(String.init),
      complaint: complaint
    )
  }

  @Test(
    "An unknown command is named with the one that was probably meant",
    arguments: [
      ("strat", "There is no command `hearth strat`. Did you mean `hearth start`?"),
      ("events lst", "There is no command `hearth events lst`. Did you mean `hearth events list`?"),
      ("functions config gte", "Did you mean `hearth functions config get`?"),
      ("xyz", "There is no command `hearth xyz`.\nCommands: init, start, "),
    ]
  )
  func unknown(line: String, words: String) throws {
    let word = try #require(line.split(separator: " ").last)
    let text = try #require(explanation(line, "Error: Unexpected argument '\(word)'"))

    #expect(text.contains(words), "\(text)")
  }

  @Test("A command without one to fall back on takes no word, whatever else is wrong")
  func unknownWithOptions() {
    let text = explanation("auth creat --hub x:1", "Error: Unknown option '--hub'")
    #expect(text?.contains("Did you mean `hearth auth create`?") == true)
  }

  @Test("A number below 0 is not taken for an option")
  func belowZero() throws {
    let clock = explanation("clock advance -5m", "Error: Unknown option '-5'")
    #expect(clock?.contains("only forward") == true)
    let limit = explanation("events list --limit -5", "Error: Missing value for '--limit <limit>'")
    #expect(limit == "-5 is below 0, and no option of `hearth events list` takes such a number.")
  }

  @Test("--data takes a number below 0, which is JSON")
  func dataBelowZero() throws {
    #expect(try Call.parse(["f", "--data", "-5"]).payload == "-5")
    #expect(try Call.parse(["f", "--data", "-1e3", "--as", "tina"]).user == "tina")
    #expect(try Call.parse(["f", "--data", "-"]).payload == "-")
    #expect(try Enqueue.parse(["q", "--data", "-5", "--in", "5m"]).payload == "-5")
    #expect(try Fire.parse(["f", "--document", "a/b", "--data", "-5"]).after == "-5")
    #expect(explanation("call f --data -5 --nonsense", "Unknown option '--nonsense'") == nil)
  }

  @Test("--data before another option is the mistake, and not that option's value")
  func dataWithoutJSON() {
    let complaint = "Error: Unexpected argument 'tina'"
    #expect(throws: (any Error).self) { try Call.parse(["f", "--data", "--as", "tina"]) }
    #expect(
      explanation("call f --data --as tina", complaint)
        == "--data is not JSON: the word after it is --as. Give JSON, @FILE or - for stdin."
    )
    #expect(explanation("call f --data 1 --as tina tina", complaint) == nil)
    #expect(explanation("exec -- call --data --as tina", complaint) == nil)
  }

  @Test(
    "What the parser explains well stays as it is",
    arguments: [
      ("start --nonsense", "Error: Unknown option '--nonsense'"),
      ("functions config NAME --nonsense", "Error: Unknown option '--nonsense'"),
      ("call", "Error: Missing expected argument '<name>'"),
      ("events retry", "Error: Name an event, or give --all."),
    ]
  )
  func explained(line: String, complaint: String) {
    #expect(explanation(line, complaint) == nil)
  }

  @Test(
    "An address of the hub needs a host and a port",
    arguments: [
      ("127.0.0.1:4400", true), ("http://localhost:4400/", true), ("[::1]:4400", true),
      ("localhost", false), (":4400", false), ("4400", false), ("https://localhost:4400", false),
      ("localhost:0", false), ("localhost:65536", false), ("localhost:x", false),
      ("localhost:4400/path", false), ("", false),
    ]
  )
  func hub(address: String, isFine: Bool) {
    let isTaken = (try? HubAddress.check(address)) != nil
    #expect(isTaken == isFine)
  }

  @Test("The port of another service leads to the hub by the way that was taken")
  func wrongPort() {
    let note = "This is the port of Firestore; Hub answers at 127.0.0.1:4400."

    #expect(HubAddress.wrongPort(note, "--hub") == note + " Use --hub 127.0.0.1:4400.")
    #expect(
      HubAddress.wrongPort(note, "FIREBASE_EMULATOR_HUB")
        == note + " Use FIREBASE_EMULATOR_HUB=127.0.0.1:4400."
    )
  }
}
