import DocumentModel
import SecurityRules
import TestSupport
import Testing

@Suite("Rules that deny nothing")
struct OpenAccessTests {
  /// January 1, 2026.
  private let time = Timestamp(microseconds: 1_767_225_600_000_000)

  private func openAccess(_ matches: String) throws -> Ruleset.OpenAccess? {
    try Ruleset(
      name: "firestore.rules",
      content: SampleRules.documents(matches)
    ).openAccess(at: time)
  }

  @Test(
    "Rules are open to everyone if anyone may read and write each document, however it is put",
    arguments: [
      "match /{document=**} { allow read, write; }",
      "match /{document=**} { allow read, write: if true; }",
      "match /{document=**} { allow read: if true; allow write: if 1 < 2; }",
      "match /{document=**} { allow read, write: if request.time < timestamp.date(2026, 2, 1); }",
      "function any() { return true; } match /{a=**} { allow get, list, write: if any(); }",
      "match /users/{id} { allow read: if false; } match /{a}/{b=**} { allow read, write; }",
    ]
  )
  func everyone(matches: String) throws {
    #expect(try openAccess(matches) == .everyone)
  }

  @Test("Rules that only ask for a user are open to those who are signed in")
  func signedIn() throws {
    let matches = "match /{document=**} { allow read, write: if request.auth != null; }"
    #expect(try openAccess(matches) == .signedIn)
  }

  @Test(
    "Rules that deny one method, one depth or one collection of all are not open",
    arguments: [
      "match /notes/{id} { allow read: if false; }",
      "match /{document=**} { allow read; }",
      "match /{document=**} { allow read, create, update; }",
      "match /{document=**} { allow get, write; }",
      "match /{collection}/{document} { allow read, write; }",
      "match /users/{id=**} { allow read, write; }",
      "match /{document=**} { allow read, write: if request.time < timestamp.date(2025, 12, 1); }",
      "match /{document=**} { allow read, write: if request.auth.token.admin == true; }",
      "match /{document=**} { allow read, write: if request.auth.uid == 'alice'; }",
    ]
  )
  func closed(matches: String) throws {
    #expect(try openAccess(matches) == nil)
  }
}
