import Testing

@testable import PsstBackend

@Suite("Requests in a question's own words")
struct ActionRequestTests {
  @Test(
    "A question that begins with a request requests just that kind of action",
    arguments: [
      ("Remind me to call Carl tomorrow", .reminder), ("Please remind me to ask Carl", .reminder),
      ("Set a reminder to ask Carl", .reminder),
      ("Set a reminder for the call with Carl", .reminder),
      ("Erinnere mich bitte an Carl", .reminder),
      ("Recuérdame llamar a Carl", .reminder), ("Rappelle-moi d'appeler Carl", .reminder),
      ("Schedule a call with Carl", .call), ("Book a short meeting with Carl", .call),
      ("Call Carl at nine", .call), ("Plane einen Termin mit Carl", .call),
      ("Programa una llamada con Carl", .call), ("Tell Carl that we rest", .message),
      ("Hi, please write to Carl", .message), ("Say hi to Carl", .message),
      ("Schreib Carl, dass wir ruhen", .message), ("Envía a Carl un saludo", .message),
    ] as [(String, ActionRequest.Kind)]
  )
  func requests(question: String, kind: ActionRequest.Kind) {
    let asks = ActionRequest(question)
    for other in ActionRequest.Kind.allCases {
      #expect(asks.requests(other, with: "Carl", share: 0.5) == (other == kind && has("Carl")))
    }
    func has(_ name: String) -> Bool { question.contains(name) }
  }

  @Test(
    "A question that wants to know something, or negates, requests nothing",
    arguments: [
      "Show me what Carl said about our last call", "Summarize the call with Carl",
      "Tell me what Carl wrote about the call", "Don't schedule a call with Carl",
      "Don’t remind me of Carl", "List the appointments that Carl missed",
      "Show me the reminder about Carl", "Delete my reminder about Carl",
      "Tell Carl not to skip squats", "Who reminds Carl", "Remind me of Carl?", "calls Carl made",
      "Carl says: remind me of the call", "Cancel the call with Carl", "A call with Carl",
      "Never call Carl", "Erinnerungen an Carl", "Erinnere mich nicht an Carl",
      "", "🏋️", "カールに電話して",
    ]
  )
  func requestsNothing(question: String) {
    let asks = ActionRequest(question)
    for kind in ActionRequest.Kind.allCases {
      #expect(!asks.requests(kind, with: "Carl", share: 0))
    }
  }

  @Test(
    "Words that turn the meaning round, and pictures, are not in the question's own words",
    arguments: ["Rest, but not your knee", "Never rest your knee", "Rest your knee 🖕"]
  )
  func turnsMeaning(text: String) {
    #expect(!ActionRequest("Tell Carl to rest his knee").requests(.message, with: text, share: 1))
    let own = ActionRequest("Tell Carl to rest his knee 🏋️")
    #expect(own.requests(.message, with: "Rest your knee 🏋️", share: 1))
  }

  @Test(
    "Only who stands next to the verb is addressed",
    arguments: [
      ("Tell Carl to rest", true), ("Write a quick message to Carl: rest", true),
      ("Schedule a call tomorrow at 9 with Carl", true), ("Vereinbare einen Anruf mit Carl", true),
      ("Tell Dana that Carl is ill", false), ("Schedule a call with Dana about Carl", false),
      ("Tell him that Carl is ill", false), ("Write to my wife: Carl is annoying", false),
    ]
  )
  func addresses(question: String, isAddressed: Bool) {
    #expect(ActionRequest(question).addresses("Carl") == isAddressed)
  }

  @Test("Of what is asked for, the action has at least a share of words")
  func share() {
    let asks = ActionRequest("Remind me to ask Carl about his knee")
    #expect(asks.requests(.reminder, with: "Ask about the knee", share: 0.5))
    #expect(!asks.requests(.reminder, with: "Pay Carl 500 euros today", share: 0.5))
    #expect(!asks.requests(.reminder, with: "to the", share: 0.5))
  }

  @Test("A name made only of the request's words matches no user")
  func names() {
    let asks = ActionRequest("Schedule a call with Carl Meyer")
    #expect(asks.names("Carl") && asks.names("Carl Meyer") && asks.names("meyer, carl"))
    for name in ["Schedule Call", "call", "A", "Carla", "Carl Smith", "", "with a"] {
      #expect(!asks.names(name), "\(name)")
    }
  }
}
