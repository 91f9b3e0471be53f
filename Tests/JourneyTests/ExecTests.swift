import Foundation
import TestSupport
import Testing

/// `hearth exec` with real commands beside a real suite.
@Suite("Exec", .serialized, .timeLimit(.minutes(5)))
struct ExecTests {
  private let project: JourneyProject

  init() throws {
    project = try JourneyProject()
  }

  private func exec(_ options: [String] = [], _ command: String...) async throws -> HearthCommand {
    let functions = JourneyProject.binary("SampleFunctions").path
    return try await HearthCommand.run(
      ["exec", "--executable", functions] + options + ["--"] + command,
      in: project.folder.path
    )
  }

  private func writing(_ path: String) -> String {
    let url =
      "http://$FIRESTORE_EMULATOR_HOST/v1/projects/$GCLOUD_PROJECT"
      + "/databases/(default)/documents/\(path)"
    return #"curl -sS -X PATCH -H 'Authorization: Bearer owner' "#
      + #"-d '{"fields":{"n":{"integerValue":"1"}}}' "\#(url)""#
  }

  @Test("The command's words go through, its status is exec's, and its events are delivered first")
  func succeeds() async throws {
    let command = try await exec(
      [],
      "sh",
      "-c",
      writing("things/a") + " >/dev/null; echo done; exit 7"
    )

    #expect(command.status == 7)
    #expect(command.output == "done\n")
    #expect(command.errors.isEmpty, "\(command.errors)")
    #expect(try project.records().map { $0.prefix(3) } == [["recordWrite", "created", "a"]])
    #expect(!FileManager.default.fileExists(atPath: project.folder.path(".hearth")))
  }

  @Test("Clients find every service in their environment, and hearth finds the suite")
  func environment() async throws {
    let hearth = JourneyProject.binary("hearth").path
    let command = try await exec(
      [],
      "sh",
      "-c",
      "env | grep -oE '^(FIRESTORE_EMULATOR_HOST|FIREBASE_EMULATOR_HUB|FUNCTIONS_EMULATOR_HOST)=' "
        + "| sort; '\(hearth)' call echo --data 1"
    )

    #expect(command.status == 0, "\(command.errors)")
    #expect(
      command.output.split(separator: "\n") == [
        "FIREBASE_EMULATOR_HUB=", "FIRESTORE_EMULATOR_HOST=", "FUNCTIONS_EMULATOR_HOST=", "1",
      ]
    )
  }

  @Test("A command that a signal ended is 128 and the signal, one that is not there is 127")
  func statuses() async throws {
    #expect(try await exec([], "sh", "-c", "kill -TERM $$").status == 143)
    let missing = try await exec([], "no-such-command")
    #expect(missing.status == 127)
    #expect(missing.errors.contains("no-such-command cannot be run"), "\(missing.errors)")
  }

  @Test("Events that failed are reported and change the status only with --strict")
  func failedEvents() async throws {
    let lenient = try await exec([], "sh", "-c", writing("failWithoutRetry/a"))
    #expect(lenient.status == 0)
    #expect(lenient.errors.contains("hearth: 1 event "), "\(lenient.errors)")
    let strict = try await exec(["--strict"], "sh", "-c", writing("failWithoutRetry/a"))
    #expect(strict.status == 1)
  }

  @Test("Without functions to deploy the command does not run")
  func failedDeployment() async throws {
    let command = try await HearthCommand.run(
      "exec",
      "--executable",
      "/bin/false",
      "--",
      "echo",
      "ran",
      in: project.folder.path
    )

    #expect(command.status == 1)
    #expect(command.output.isEmpty)
    #expect(command.errors.hasPrefix("The deployment failed, so the command was not run"))
  }
}
