import JSONText
import ArgumentParser
import EmulatorSuite

/// `hearth faults`: delivers events with the faults that occur in production.
struct Faults: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Deliver events twice, late or out of order, and cut connections.",
    discussion: """
      A seed decides which events are hit, so the same writes meet the same faults again. Whatever \
      the faults, functions that are ready for production leave the same data behind. Nothing is \
      lost: what is dropped is delivered later.

        hearth faults set --seed 7 --duplicates 0.3 --drops 0.1 --reordering
        hearth faults
        hearth faults clear
        hearth faults disconnect      cuts the clients of the Realtime Database
      """,
    subcommands: [Show.self, Set.self, Clear.self, Disconnect.self],
    defaultSubcommand: Show.self
  )

  /// `hearth faults show`.
  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show the faults that are set.",
      discussion: """
          hearth faults show
          hearth faults show --json     null if none are set
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
      let body = try await suite.connect().data("GET", "/hearth/v1/faults")
      guard !json else { return Terminal.print(json: body) }
      let plan = try Plan?(decodingJSON: body)
      Terminal.print(plan?.text ?? "No faults are set; `hearth faults set` sets some.")
    }

    /// The faults that the suite has planned.
    struct Plan: Decodable {
      var seed: UInt64
      var duplicates: Double?
      var drops: Double?
      var reordering: Bool?

      /// The faults in words.
      var text: String {
        func percent(_ part: Double?) -> String? {
          part.flatMap { $0 > 0 ? "\(($0 * 1000).rounded() / 10)%" : nil }
        }
        let faults = [
          percent(duplicates).map { "\($0) of the events come twice" },
          percent(drops).map { "the first attempt of \($0) is lost" },
          reordering == true ? "events of one document overtake each other" : nil,
        ].compactMap(\.self)
        return
          "With seed \(seed), \(faults.isEmpty ? "no event is hit" : faults.joined(separator: ", "))."
          + " `hearth faults clear` ends it."
      }
    }
  }

  /// `hearth faults set`.
  struct Set: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Set faults for the events from now on.",
      discussion: "  hearth faults set --seed 7 --duplicates 0.3 --reordering"
    )

    @OptionGroup var suite: SuiteLocation

    @Option(help: "What decides which events are hit; random when left out.")
    var seed: UInt64?

    @Option(help: "The part of events that come twice, from 0 to 1.")
    var duplicates = 0.0

    @Option(help: "The part of events whose first attempt is lost, from 0 to 1.")
    var drops = 0.0

    @Flag(help: "Let events of one document overtake each other.")
    var reordering = false

    func validate() throws {
      for (name, part) in [("duplicates", duplicates), ("drops", drops)] {
        guard (0...1).contains(part) else {
          throw ValidationError("--\(name) is \(part); give a part from 0 to 1.")
        }
      }
      guard duplicates > 0 || drops > 0 || reordering else {
        throw ValidationError("Give --duplicates, --drops or --reordering.")
      }
    }

    func run() async throws {
      struct Order: Encodable {
        var seed: UInt64
        var duplicates: Double
        var drops: Double
        var reordering: Bool
      }
      let client = try await suite.connect()
      // A seed small enough for every JSON parser to represent exactly.
      let seed = self.seed ?? UInt64.random(in: 0...UInt64(UInt32.max))
      let order = Order(seed: seed, duplicates: duplicates, drops: drops, reordering: reordering)
      _ = try await client.data(
        "PUT",
        "/hearth/v1/faults",
        body: try order.jsonBytes()
      )
      Terminal.print("Faults are set; --seed \(seed) repeats them.")
    }
  }

  /// `hearth faults clear`.
  struct Clear: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Deliver events as ever.",
      discussion: "  hearth faults clear"
    )

    @OptionGroup var suite: SuiteLocation

    func run() async throws {
      _ = try await suite.connect().data("DELETE", "/hearth/v1/faults")
      Terminal.print("No faults.")
    }
  }
  /// `hearth faults disconnect`.
  struct Disconnect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Cut the connections of all clients of the Realtime Database.",
      discussion: """
        What they asked for with onDisconnect is done. They connect again by themselves, after about \
        a second.

          hearth faults disconnect
        """
    )

    @OptionGroup var suite: SuiteLocation

    func run() async throws {
      let body = try await suite.connect().data("POST", "/hearth/v1/faults/disconnect")
      let count = try EventCount(decodingJSON: body).count
      Terminal.print(
        "Cut the connections of \(counted(count, "client")) of the Realtime Database."
      )
    }
  }
}
