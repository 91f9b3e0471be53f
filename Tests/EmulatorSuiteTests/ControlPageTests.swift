import Foundation
import Testing

@testable import EmulatorSuite

@Suite("The page of the control API")
struct ControlPageTests {
  private func file(_ path: String) throws -> String {
    let checkout = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    return try String(contentsOf: checkout.appending(path: path), encoding: .utf8)
  }

  /// Returns what the first cells of the page's tables name, such as `GET /metrics`.
  private func names() throws -> [String] {
    try file("docs/control-api.md").matches(of: /(?m)^\| `([^`]+)` \|/).map { String($0.1) }
  }

  @Test("Each route of the hub is on the page once, and nothing else is")
  func routes() throws {
    let described = try names().filter { $0.contains(" /") }.map {
      $0.replacing(/\{[a-z]+\}/, with: "*")
    }
    let routes = ControlAPI.routes.map { "\($0.method) /\($0.path.joined(separator: "/"))" }

    #expect(described.sorted() == routes.sorted())
  }

  @Test("Each metric is on the page once, and nothing else is")
  func metrics() throws {
    let described = try names().filter { !$0.contains(" /") }
    let source = "Sources/Server/EmulatorSuite/ControlAPI/ControlAPI+Metrics.swift"
    let metrics = try file(source).matches(of: /"((?:hearth|process)_[a-z_]+)"/).map {
      String($0.1)
    }

    #expect(described.sorted() == metrics.sorted())
    #expect(!metrics.isEmpty)
  }
}
