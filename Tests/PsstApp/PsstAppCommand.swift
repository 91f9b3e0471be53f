import ArgumentParser
import FirestoreClient
import Foundation
import OutboundHTTP
import PsstModels
import PsstServices

/// The `psst-app` command: an app of one user, which tests drive from any language.
///
/// It reads one command per line of its standard input, as JSON such as `{"id": 1, "do": "send",
/// "chat": "c1", "text": "Hi"}`, and writes a line with the same id and `ok` or `error`. What it
/// observes comes in lines without an id. It ends with its standard input.
@main
struct PsstAppCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "psst-app",
    abstract: "An app of Psst without a screen, for tests.",
    discussion: """
      FIRESTORE_EMULATOR_HOST, FIREBASE_AUTH_EMULATOR_HOST and GCLOUD_PROJECT say where the suite is.
      """
  )

  @Option(help: "The URL below which the functions are.")
  var functions: String

  @Option(help: ArgumentHelp("The folder for messages that wait.", valueName: "folder"))
  var queue: String?

  @Flag(help: "Use URLSession for HTTP, as an app on a phone does.")
  var urlSession = false

  func run() async throws {
    let environment = ProcessInfo.processInfo.environment
    let http: any HTTPTransport = urlSession ? URLSessionTransport() : OutboundClient()
    var settings = try FirestoreSettings(environment: environment)
    settings.timeout = AppServices.timeout
    let firestore = Firestore(settings, http: http)
    let app = App(
      authentication: AuthenticationService(
        settings: AuthenticationSettings(environment: environment),
        firestore: firestore,
        http: http
      ),
      firestore: firestore,
      functions: functions,
      http: http,
      queueFolder: queue.map { URL(filePath: $0, directoryHint: .isDirectory) }
    )
    let (lines, input) = AsyncStream<String>.makeStream()
    let reader = Thread {
      while let line = readLine() { input.yield(line) }
      input.finish()
    }
    reader.start()
    await withDiscardingTaskGroup { group in
      for await line in lines {
        for work in await app.take(line) { group.addTask { await work() } }
      }
      group.cancelAll()
    }
  }
}
