import Foundation
import Manifests
import Testing

@testable import ProductionPlan

@Suite("Quoted text")
struct QuotedTextTests {
  @Test(
    "HCL reads a text as itself, and never as a template",
    arguments: [
      ("plain", "\"plain\""), ("${x}", "\"$${x}\""), ("%{if}", "\"%%{if}\""),
      ("$${x}", "\"$$${x}\""), ("$x %y", "\"$x %y\""), ("a\"b\\c", "\"a\\\"b\\\\c\""),
      ("a\nb\tc\r", "\"a\\nb\\tc\\r\""), ("\u{1}", "\"\\u0001\""), ("$\u{301}{", "\"$\u{301}{\""),
    ]
  )
  func hcl(text: String, quoted: String) {
    #expect(QuotedText.hcl(text) == quoted)
  }

  @Test(
    "A shell reads a text as one word",
    arguments: [
      ("plain-1.2/x", "plain-1.2/x"), ("", "''"), ("a b", "'a b'"), ("$(id)", "'$(id)'"),
      ("it's", "'it'\\''s'"), ("'\u{301}", "''\\''\u{301}'"), ("a\nb", "'a\nb'"), ("~", "'~'"),
    ]
  )
  func shell(text: String, quoted: String) {
    #expect(QuotedText.shell(text) == quoted)
  }

  @Test(
    "A list of gcloud has a separator that none of its parts has",
    arguments: [
      (["a=b", "c=d"], "a=b,c=d"), (["a=b,c"], "^~#^a=b,c"), (["^a", "b"], "^~#^^a~#b"),
      (["a,~", "b"], "^~~#^a,~~~#b"), ([",\u{301}"], "^~#^,\u{301}"),
    ]
  )
  func gcloudList(parts: [String], list: String) {
    #expect(QuotedText.gcloudList(parts) == list)
  }

  @Test(
    "Cloud Run expands nothing in a variable's value",
    arguments: [
      ("$(A) $B $((", "$$(A) $B $$(("), ("a$$(V)b", "a$$$$(V)b"), ("$", "$"), ("$$", "$$$"),
      ("$$$(V)", "$$$$$$(V)"), ("$5 and $$5", "$5 and $$$5"), ("$(V", "$$(V"), ("$()", "$$()"),
      ("$\u{301}(V)", "$\u{301}(V)"), ("(V)$", "(V)$"), ("$a$(V)$", "$a$$(V)$"), ("", ""),
    ]
  )
  func expansion(value: String, written: String) {
    #expect(QuotedText.withoutExpansion(value) == written)
    #expect(expanded(QuotedText.withoutExpansion(value)) == value)
  }

  @Test("Each short text of dollars, parentheses and letters comes out of the expansion unchanged")
  func everyExpansion() {
    var texts = [""]
    for _ in 1...6 {
      texts += texts.flatMap { text in ["$", "(", ")", "V"].map { text + $0 } }
      texts = Set(texts).sorted()
    }

    #expect(texts.count == 5461)
    #expect(texts.allSatisfy { expanded(QuotedText.withoutExpansion($0)) == $0 })
  }

  /// Expands a value as Kubernetes does; each variable's value is `expanded`.
  private func expanded(_ value: String) -> String {
    let bytes = Array(value.utf8)
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      guard bytes[index] == UInt8(ascii: "$"), index + 1 < bytes.count else {
        result.append(bytes[index])
        index += 1
        continue
      }
      let next = bytes[index + 1]
      if next == UInt8(ascii: "("),
        let end = bytes[(index + 2)...].firstIndex(of: UInt8(ascii: ")"))
      {
        result += "expanded".utf8
        index = end + 1
        continue
      }
      result += next == UInt8(ascii: "$") ? [next] : [bytes[index], next]
      index += 2
    }
    return String(decoding: result, as: UTF8.self)
  }

  @Test(
    "A number has no exponent and no superfluous digit",
    arguments: [
      (0, "0"), (0.1, "0.1"), (500, "500"), (0.0001, "0.0001"), (0.00001, "0.00001"),
      (1.5e-7, "0.00000015"), (2.05, "2.05"), (3600, "3600"), (1e16, "10000000000000000"),
      (1.25e17, "125000000000000000"), (499.99999, "499.99999"), (-0.5, "-0.5"),
    ]
  )
  func number(number: Double, text: String) {
    #expect(QuotedText.number(number) == text)
    #expect(Double(text) == number)
  }

  @Test("The least number above 0 is not written as 0")
  func leastNumber() {
    let text = QuotedText.number(.leastNonzeroMagnitude)

    #expect(!text.contains("e"))
    #expect(Double(text) == .leastNonzeroMagnitude)
  }

  @Test(
    "A duration has at most nine digits after the point",
    arguments: [(0.1, "0.1s"), (0.0001, "0.0001s"), (0.1 + 0.2, "0.3s"), (2_678_400, "2678400s")]
  )
  func seconds(seconds: Double, text: String) {
    #expect(QuotedText.seconds(seconds) == text)
  }

  @Test("A part of a URL's path has no character that ends it")
  func pathPart() {
    #expect(QuotedText.pathPart("a/b?`c` \"é") == "a%2Fb%3F%60c%60%20%22%C3%A9")
  }

  @Test("JSON is one string, whatever is in it")
  func json() {
    #expect(QuotedText.json("a\"b\\c\nd\u{1}") == "\"a\\\"b\\\\c\\nd\\u0001\"")
  }

  @Test("Equal plans give equal files, and their record gives their resources")
  func files() throws {
    let plan = try CloudPlan(
      functions: [
        "call": callable(), "tick": function { $0.scheduleTrigger = .init(schedule: "x") },
      ],
      settings: .init(rules: "rules", indexes: .init())
    )
    let files = try ProductionFiles(plan, dockerfile: "FROM scratch\n")

    #expect(try files == ProductionFiles(plan, dockerfile: "FROM scratch\n"))
    let record = try #require(files.files.last)
    #expect(record.name == ProductionFiles.recordName)
    let read = try ProductionRecord(json: Data(record.text.utf8))
    #expect(read.resources == plan.resources)
    #expect(throws: (any Error).self) { try ProductionRecord(json: Data("{}".utf8)) }
    #expect(throws: PlanError.self) {
      try ProductionRecord(json: Data("{\"version\":2,\"resources\":[]}".utf8))
    }
    for file in files.files where file.name != record.name && file.name != "firestore.rules.json" {
      #expect(
        file.name == "firestore.rules" || file.text.contains("Generated by `hearth production`")
      )
    }
  }
}
