import FirestoreProtos
import OutboundHTTP
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

@testable import FirestoreClient

@Suite("Listening over WebChannel")
struct WebChannelListenerTests {
  private let request = Google_Firestore_V1_ListenRequest.with {
    $0.database = "projects/p/databases/(default)"
    $0.addTarget.targetID = 1
  }

  /// Sends a request and returns the target IDs of its responses.
  private func listen(_ http: ScriptedHTTP, token: String? = "t") async throws -> [Int32] {
    let ids = Mutex<[Int32]>([])
    let listener = WebChannelListener(endpoint: "http://h", http: http, chunkBytesMax: 1000)
    try await listener.listen(request, token: token) { answer in
      ids.withLock { $0 += answer.targetChange.targetIds }
    }
    return ids.withLock { $0 }
  }

  private func chunk(_ body: String) -> ScriptedHTTP.Answer {
    ScriptedHTTP.json("\(body.utf16.count)\n\(body)")
  }

  @Test("Each back channel goes on after the last array, and what came already is left out")
  func arrays() async throws {
    let http = ScriptedHTTP([
      chunk(#"[[0,["c","session 1","",8,14,30000]]]"#),
      chunk(#"[[1,[{"targetChange":{"targetIds":[7]}}]],[2,["noop"]]]"#),
      chunk(#"[[2,["noop"]],[3,[{"targetChange":{"targetIds":[8]},"news":"é🧡"}]]]"#),
      chunk(#"[[4,["close"]]]"#),
      ScriptedHTTP.json(""),
    ])
    #expect(try await listen(http) == [7, 8])
    #expect(
      http.calls.dropFirst().prefix(3).map { $0.contains("SID=session%201") } == [true, true, true]
    )
    #expect(http.calls[2].contains("AID=2&"))
    #expect(http.calls[3].contains("AID=3&"))
    #expect(http.bodies[0].contains("Authorization%3ABearer%20t"))
    #expect(http.bodies[0].contains("%22targetId%22%3A1"))
  }

  @Test("An error of the stream is thrown with its status")
  func refusal() async throws {
    let http = ScriptedHTTP([
      chunk(#"[[0,["c","s","",8,14,30000]]]"#),
      chunk(#"[[1,[{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}]]]"#),
      ScriptedHTTP.json(""),
    ])
    let error = await #expect(throws: FirestoreError.self) { try await listen(http) }
    #expect(error?.code == .permissionDenied)
    #expect(error?.message == "no")
  }

  @Test("A session that the server no longer knows is a failure that passes")
  func unknownSession() async throws {
    let http = ScriptedHTTP([
      chunk(#"[[0,["c","s","",8,14,30000]]]"#), ScriptedHTTP.json("Unknown SID", status: 400),
      ScriptedHTTP.json(""),
    ])
    let error = await #expect(throws: FirestoreError.self) { try await listen(http) }
    #expect(error?.code == .unavailable)
  }

  @Test(
    "Something else behind the address is reported as such",
    arguments: [
      "<html>", "5\n[[1]]", "3\n[]]", "9\n{\"a\":\"b\"}", "99999\n[", "11\n[[0,[\"c\"]]]",
    ]
  )
  func stranger(body: String) async throws {
    let error = await #expect(throws: FirestoreError.self) {
      try await listen(ScriptedHTTP([ScriptedHTTP.json(body)]))
    }
    #expect(error?.code == .internal)
    #expect(error?.message.contains("is there Firestore behind the address?") == true)
  }

  @Test("Chunks are found however the bytes are cut", arguments: 0..<50)
  func frames(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let texts = (0..<20).map { number in
      String(repeating: ["a", "é", "€", "🧡"][number % 4], count: 1 + number * 7)
    }
    var bytes = texts.flatMap { Array("\($0.utf16.count)\n\($0)".utf8) }[...]
    var frames = WebChannelFrames(bytesMax: 1000)
    var found: [String] = []
    while !bytes.isEmpty {
      let piece = bytes.prefix(Int.random(in: 1...90, using: &random))
      bytes = bytes.dropFirst(piece.count)
      try frames.append(Array(piece))
      while let chunk = try frames.next() { found.append(String(decoding: chunk, as: UTF8.self)) }
    }
    #expect(found == texts)
  }
}
