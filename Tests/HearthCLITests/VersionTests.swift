import Foundation
import Testing

@testable import HearthCLI

@Suite("Version")
struct VersionTests {
  @Test("The command reports the newest version of the changelog")
  func changelog() throws {
    let checkout = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: checkout.appending(path: "CHANGELOG.md"), encoding: .utf8)
    let newest = text.firstMatch(of: /(?m)^## \[([0-9]+\.[0-9]+\.[0-9]+)\]/).map { String($0.1) }

    #expect(newest == Version.current)
  }
}
