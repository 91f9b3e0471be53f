import Identity
import Logging
import StatusCodes
import Testing
import TestSupport

@Suite("Credentials and projects at the endpoints")
struct CredentialTests {
  private let read = #"{"name":"projects/demo-psst/databases/(default)/documents/c/a"}"#

  @Test(
    "The administrator, a user and an unauthenticated caller are accepted; the store decides on access",
    arguments: EndpointKind.allCases
  )
  func accepted(endpoint: EndpointKind) async throws {
    try await withFirestore { firestore in
      let token = try UnsignedTokenIssuer.issue(uid: "u1")

      for authorization in ["Bearer owner", "Bearer \(token)", nil] {
        let error = await #expect(throws: StatusError.self) {
          try await firestore.endpoint(endpoint).call(
            .getDocument,
            read,
            authorization: authorization
          )
        }
        #expect(error?.statusCode == .notFound)
      }
    }
  }

  @Test(
    "A malformed credential is UNAUTHENTICATED",
    arguments: EndpointKind.allCases,
    ["Bearer x", "Basic eDp5", "Bearer a.b.c", "owner"]
  )
  func refused(endpoint: EndpointKind, authorization: String) async throws {
    try await withFirestore { firestore in
      let error = await #expect(throws: StatusError.self) {
        try await firestore.endpoint(endpoint).call(
          .getDocument,
          read,
          authorization: authorization
        )
      }
      #expect(error?.statusCode == .unauthenticated)
    }
  }

  @Test("Another project than the suite's is served and logged once")
  func otherProject() async throws {
    try await withFirestore { firestore in
      let request = #"{"name":"projects/wrong/databases/(default)/documents/c/a"}"#
      for endpoint in EndpointKind.allCases + EndpointKind.allCases {
        for request in [request, read] {
          await #expect(throws: StatusError.self) {
            try await firestore.endpoint(endpoint).call(.getDocument, request, authorization: nil)
          }
        }
      }
      let warnings = firestore.log.entries(atLeast: .warning)

      #expect(warnings.count == 1)
      #expect(
        warnings.first?.message
          .hasPrefix("Requests for project wrong; this suite serves demo-psst.") == true
      )
    }
  }
}
