import Identity
import InvocationContext
import Testing

@Suite("Signed causes")
struct CauseSignatureTests {
  private static let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  /// Returns the cause of the work of a request with a header.
  private func cause(_ header: String?, trace: String? = nil) async -> String? {
    await EventCause.with(header: CauseSignature.verified(header), traceParent: trace) {
      EventCause.current
    }
  }

  /// Returns the header with which a worker sends the cause of its invocation back.
  private func passedOn(_ cause: String, trace: String?) async -> String? {
    await EventCause.with(header: CauseSignature.signed(cause), traceParent: trace) {
      EventCause.current
    }
  }

  @Test("A cause that a worker was given comes back, with the trace of the run")
  func own() async {
    let longest = "\(UInt64.max).\(UInt32.max).\(String(repeating: "f", count: 63));1000000"
    for own in ["7.0.f;3", longest] {
      #expect(await cause(await passedOn(own, trace: nil)) == own)
      #expect(await cause(await passedOn(own, trace: Self.trace)) == "\(own);\(Self.trace)")
    }
  }

  @Test("A made-up, altered or malformed cause is none, and only its trace counts")
  func forged() async {
    let signed = CauseSignature.signed("7.0.f;3")
    let forged = [
      "7.0.f;1000000", "7.0.f", "", ";", ";;;", signed.replacing("7.0.f;3", with: "7.0.f;4"),
      signed.replacing("7.0.f;3", with: "8.0.f;3"), String(signed.dropLast()), signed + "A",
      "7.0.f;3;;", "7.0.f;3;;AAAA", "7.0.f;3;;%", "7.0.f;3;no trace;x",
      String(repeating: ";", count: 1000), String(repeating: "7", count: 5000),
    ]
    for header in forged {
      #expect(await cause(header) == nil)
      #expect(await cause(header, trace: Self.trace) == ";;\(Self.trace)")
    }
    #expect(await cause("7.0.f;9;\(Self.trace);x") == ";;\(Self.trace)")
    #expect(await cause(nil) == nil)
  }
}
