import EmulatorSuite
import Identifiers

/// The names of the deployed functions, for commands that take one.
struct FunctionNames {
  private let functions: [FunctionDescription]

  init(_ functions: [FunctionDescription]) { self.functions = functions }

  /// Creates the names of the functions that a suite serves.
  init(_ client: ControlClient) async throws {
    functions = try await client.get("/hearth/v1/functions", as: [FunctionDescription].self)
  }

  func contains(_ name: String) -> Bool { self[name] != nil }

  /// The function of a name; nil if none is deployed.
  subscript(name: String) -> FunctionDescription? { functions.first { $0.name == name } }

  /// Throws unless functions of all names are deployed.
  func check(_ names: some Sequence<String>) throws {
    for name in names where !contains(name) { throw unknown(name) }
  }

  /// Returns the failure of a command whose function is not deployed.
  ///
  /// It names the functions of one kind, or all of them, and the one that was probably meant.
  func unknown(_ name: String, kind: FunctionDescription.Kind? = nil) -> CommandError {
    let known = functions.filter { kind == nil || $0.kind == kind }.map(\.name).sorted()
    let nouns =
      switch kind {
      case .callable: (one: "callable", many: "Callables")
      case .task: (one: "function that takes tasks", many: "Functions that take tasks")
      default: (one: "function", many: "Functions")
      }
    guard !known.isEmpty else {
      return CommandError(
        """
        No function \(name) is deployed, nor any other \(nouns.one). Wait while the suite still \
        builds them; otherwise `hearth deploy` deploys.
        """
      )
    }
    // A name of another kind is worth asking for, too: the next answer says how it is run.
    // The last part of a URL or a path is the name.
    let last = name.split(separator: "/").last.map(String.init) ?? name
    let question =
      last != name && contains(last)
      ? " Did you mean \(last)?"
      : NearestName.question(last, among: functions.map(\.name).sorted())
    return CommandError(
      "No function \(name) is deployed.\(question) \(nouns.many): \(known.joined(separator: ", "))."
    )
  }
}
