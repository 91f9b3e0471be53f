import Testing

@testable import SecurityRules

@Suite("Documents looked at for a request")
struct AccessLedgerTests {
  @Test(
    "Each document keeps its place and values, however many there are",
    arguments: [1, 20, 21, 500]
  )
  func places(count: Int) {
    let ledger = AccessLedger(isSingle: false)
    let paths = (0..<count).map { RulePath(["databases", "(default)", "documents", "t", "\($0)"]) }

    for (number, path) in paths.enumerated() {
      #expect(ledger.place(of: path) == number)
      ledger.setValue(.int(Int64(number)), at: number, after: number.isMultiple(of: 2))
    }

    let copy = ledger.copy()
    for (number, path) in paths.enumerated() {
      #expect(ledger.place(of: path) == number && copy.place(of: path) == number)
      let isAfter = number.isMultiple(of: 2)
      #expect(copy.value(at: number, after: isAfter)?.literal == "\(number)")
      #expect(copy.value(at: number, after: !isAfter) == nil)
    }
    #expect(copy.place(of: RulePath(["a"])) == count)
    #expect(ledger.place(of: RulePath(["b"])) == count)
  }

  @Test("A brief ledger is insufficient once work or expressions are used up; another never is")
  func brief() {
    let isInsufficient = { (isBrief: Bool, work: Int, expressions: Int) in
      let ledger = AccessLedger(isSingle: true, isBrief: isBrief)
      ledger.work -= work
      ledger.expressions += expressions
      return ledger.isInsufficient
    }

    #expect(!isInsufficient(true, 200_000, 10_000))
    #expect(isInsufficient(true, 200_001, 0))
    #expect(isInsufficient(true, 0, 10_001))
    #expect(!isInsufficient(false, 50_000_000, 10_000_000))
  }
}
