import InvocationContext
import Testing

@Suite("traceparent")
struct TraceParentTests {
  private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

  @Test(
    "What the W3C's header may be is valid",
    arguments: ["00-\(trace)-00f067aa0ba902b7-01", "cc-\(trace)-00f067aa0ba902b7-00"]
  )
  func valid(text: String) {
    #expect(TraceParent.isValid(text))
  }

  @Test(
    "Anything else is not",
    arguments: [
      "", "00", "ff-\(trace)-00f067aa0ba902b7-01", "00-\(trace)-0000000000000000-01",
      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
      "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
      "00-\(trace)-00f067aa0ba902b7-01-", "00-\(trace)-00f067aa0ba902b-017",
      "00-\(trace)-00f067aa0ba902b7",
      "00_\(trace)_00f067aa0ba902b7_01", "é0-\(trace)-00f067aa0ba902b7-0",
    ]
  )
  func invalid(text: String) {
    #expect(!TraceParent.isValid(text))
  }
}
