import FirestoreEmulator
import FirestoreProtos
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identity
import Logging
import NIOCore
import SwiftProtobuf
import Testing

@Suite("The memory of REST", .timeLimit(.minutes(5)))
struct RESTMemoryTests {
  @Test("The results of a query are counted while they are collected and until they are sent")
  func query() async throws {
    let budget = TransferBudget(
      bytesMax: 1_000_000,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
    let root = "projects/demo-psst/databases/(default)"
    try await withFirestore(budget: budget) { firestore in
      for index in 0..<20 {
        _ = try await firestore.service.commit(
          .with {
            $0.database = root
            $0.writes = [
              .with {
                $0.update.name = "\(root)/documents/c/d\(index)"
                $0.update.fields["t"] = .with {
                  $0.stringValue = String(repeating: "x", count: 100_000)
                }
              }
            ]
          },
          auth: .admin
        )
      }
      func run(limit: Int) async -> Response {
        let query = #"{"structuredQuery":{"from":[{"collectionId":"c"}],"limit":\#(limit)}}"#
        return await firestore.service.respond(
          to: Request(
            head: HTTPRequest(
              method: .post,
              scheme: "http",
              authority: "h",
              path: "/v1/\(root)/documents:runQuery",
              headerFields: [.authorization: "Bearer owner"]
            ),
            body: .whole(ByteBuffer(string: query))
          )
        )
      }

      #expect(await run(limit: 20).status == .tooManyRequests)
      #expect(budget.heldBytes == 0)
      let fitting = await run(limit: 5)
      #expect(fitting.status == .ok)
      #expect(fitting.heldBytes > 500_000)
    }
  }
}
