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
    "Only a close name of an option is suggested, whatever the parser suggests or complains of",
    arguments: [
      ("start --prot 1", "'--prot'. Did you mean '--import'?\nUsage: u", "'--prot'\nUsage: u"),
      (
        "start --firestore 1", "'--firestore'\nUsage: u",
        "'--firestore'. Did you mean '--firestore-port'?\nUsage: u"
      ),
      ("call f --at x", "'--at'. Did you mean '--hub'?", "'--at'. Did you mean '--as'?"),
    ]
  )
  func unknownOption(line: String, suggestion: String, words: String) {
    #expect(explanation(line, "Error: Unknown option \(suggestion)")?.hasSuffix(words) == true)
    let hidden = explanation("faults set --duplicate 1", "Error: Give --duplicates or others.")
    #expect(hidden == "Error: Unknown option '--duplicate'. Did you mean '--duplicates'?")
  }

  @Test("An option that another tool has, and a word without its option, have an answer")
  func foreignOptions() {
    let port = explanation("start --port 9000", "Error: Unknown option '--port'.")
    #expect(port?.contains("--firestore-port") == true)
    let user = explanation("call echo tina", "Error: Unexpected argument 'tina'")
    #expect(user?.hasSuffix("Did you mean --as tina?") == true)
    let early = explanation("--hub x:1 functions list", "Error: Unknown option '--hub'")
    #expect(early == "Options stand after the command: `hearth functions list --hub x:1`.")
    #expect(explanation("logs a b", "Error: Unexpected argument 'b'") == nil)
  }

  @Test("A text such as a=b becomes the JSON that was meant, quoted for the shell")
  func assignments() {
    #expect(JSONInput.shellObject(of: "role=trainer") == #"'{"role": "trainer"}'"#)
    #expect(JSONInput.shellObject(of: "n=5") == #"'{"n": 5}'"#)
    #expect(JSONInput.shellObject(of: "a=it's") == #"'{"a": "it'\''s"}'"#)
    #expect(JSONInput.shellObject(of: "role") == #"'{"key": "value"}'"#)
  }

  @Test("Only a time that is missing in a document is explained")
  func times() {
    #expect(Fire.hint(on: "'at' is a string, not a date.").contains("$timestamp"))
    #expect(Fire.hint(on: "'at' is a string, not a timestamp").contains("$timestamp"))
    #expect(Fire.hint(on: "'n' is a string, not an integer").isEmpty)
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
