import Testing

@testable import TriggerDelivery

@Suite("Which failed deliveries are kept")
struct FailedSharesTests {
  private func id(_ sequence: UInt64, _ function: String = "f") -> DeliveryID {
    DeliveryID(sequence: sequence, changeIndex: 0, function: function)
  }

  private func shares(_ count: Int = 10, bytes: Int = 1000, functions: Int = 4) -> FailedShares {
    let each = FailedShares.Bound(count: count, bytes: bytes)
    return FailedShares(each: each, all: each * functions)
  }

  @Test("However many of one function fail, those of another stay, and of its own the youngest")
  func byFunction() {
    var shares = shares()
    shares.add(id(1, "g"), bytes: 1)
    for number in 2...UInt64(100) { shares.add(id(number), bytes: 1) }
    let surplus = shares.takeSurplus(limit: 1000)

    #expect(surplus.keys.sorted() == ["f"])
    #expect(surplus["f"]?.map(\.sequence) == Array(2...UInt64(90)))
    #expect(shares.kept(of: "f").count == 10 && shares.kept(of: "g").count == 1)
    #expect(shares.takeSurplus(limit: 1000).isEmpty)
  }

  @Test("Large events leave room for few, and the last failure stays whatever its size")
  func byBytes() {
    var shares = shares()
    for number in 1...UInt64(8) { shares.add(id(number), bytes: 200) }
    #expect(shares.takeSurplus(limit: 1000)["f"]?.map(\.sequence) == [1, 2, 3])
    shares.add(id(9), bytes: 5000)
    #expect(shares.takeSurplus(limit: 1000)["f"]?.map(\.sequence) == [4, 5, 6, 7, 8])
    #expect(shares.kept(of: "f").bytes == 5000)
  }

  @Test("Where all functions together have too many, those with most are cut, to one each at least")
  func inAll() {
    var few = shares(functions: 4)
    for number in 0..<8 {
      for sequence in 1...(number == 0 ? UInt64(2) : 10) {
        few.add(id(sequence, "f\(number)"), bytes: 1)
      }
    }
    _ = few.takeSurplus(limit: 1000)
    #expect(few.kept(of: "f0").count == 2)
    // The other seven functions share the remaining 38 of 40 places equally.
    #expect((1..<8).allSatisfy { few.kept(of: "f\($0)").count == 5 })

    var many = shares(functions: 1)
    for number in 0..<100 { many.add(id(1, "f\(number)"), bytes: 100) }
    #expect(many.takeSurplus(limit: 1000).isEmpty)
  }

  @Test("One that fails again after a retry is the youngest, and one that succeeded counts no more")
  func again() {
    var shares = shares(2)
    for number in 1...UInt64(3) { shares.add(id(number), bytes: 1) }
    shares.remove(id(2))
    #expect(shares.takeSurplus(limit: 10).isEmpty)
    shares.add(id(1), bytes: 1)
    shares.add(id(4), bytes: 1)
    #expect(shares.takeSurplus(limit: 10)["f"]?.map(\.sequence) == [3])
  }

  @Test("A surplus is taken in parts of the limit")
  func parts() {
    var shares = shares(1)
    for number in 1...UInt64(10) { shares.add(id(number), bytes: 1) }
    #expect(shares.takeSurplus(limit: 4)["f"]?.map(\.sequence) == [1, 2, 3, 4])
    #expect(shares.takeSurplus(limit: 40)["f"]?.map(\.sequence) == [5, 6, 7, 8, 9])
  }
}
