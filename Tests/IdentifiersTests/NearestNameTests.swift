import Identifiers
import Testing

@Suite("Nearest name")
struct NearestNameTests {
  private static let known = ["semanticSearch", "embedMessage", "echo", "start", "stats", "flags"]

  @Test(
    "A slip of the keyboard is corrected",
    arguments: [
      ("semanticsearch", "semanticSearch"), ("smeanticSaerch", "semanticSearch"),
      ("embedMesage", "embedMessage"), ("echoo", "echo"), ("ehco", "echo"), ("strat", "start"),
      ("stat", "stats"), ("flgas", "flags"), ("semantic", "semanticSearch"),
    ]
  )
  func slips(name: String, meant: String) {
    #expect(NearestName.of(name, among: Self.known) == meant)
  }

  @Test(
    "Another word is not, nor is an empty one, nor the beginning of several",
    arguments: ["", "nosuch", "delete", "st", "xyz", String(repeating: "e", count: 10_000)]
  )
  func others(name: String) {
    #expect(NearestName.of(name, among: Self.known) == nil)
    #expect(NearestName.question(name, among: Self.known).isEmpty)
  }

  @Test("The question names the candidate, and never the name itself")
  func question() {
    #expect(NearestName.question("ecko", among: Self.known) == " Did you mean echo?")
    #expect(NearestName.of("echo", among: ["echo"]) == nil)
  }
}
