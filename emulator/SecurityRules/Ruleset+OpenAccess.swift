package import DocumentModel

extension Ruleset {
  /// The clients to whom rules allow all access to all documents.
  package enum OpenAccess: Sendable, Hashable {
    /// All clients, signed in or not.
    case everyone
    /// All clients that are signed in, as any user.
    case signedIn
  }

  /// Returns who may read and write every document at a time; nil if the rules deny any access.
  ///
  /// The rules are asked about documents of collections that no project has, so only a rule for all
  /// documents can allow it. Rules that are open until a certain time are therefore open before it.
  package func openAccess(at time: Timestamp) -> OpenAccess? {
    if allows(Self.accesses(auth: nil), at: time) { return .everyone }
    return allows(Self.accesses(auth: #"{"uid": "any user"}"#), at: time) ? .signedIn : nil
  }

  private func allows(_ cases: String, at time: Timestamp) -> Bool {
    // The file is written below; it has no mistake.
    guard let file = try? RulesTestFile(json: Array(cases.utf8), time: time) else { return false }
    return file.run(self).allSatisfy(\.isAsExpected)
  }

  /// Returns a test file with each method, for a document and for one below another document.
  private static func accesses(auth: String?) -> String {
    let auth = auth.map { #""auth": \#($0), "# } ?? ""
    let cases = ["any collection/1", "any collection/1/any other/1"].flatMap { document in
      let common = #"{"name": "any", "expect": "allow", \#(auth)"path": "\#(document)"#
      return [
        #"\#(common)", "method": "get"}"#,
        #"\#(common)", "method": "delete"}"#,
        #"\#(common)", "method": "update", "data": {}}"#,
        #"\#(common) of none", "method": "create", "data": {}}"#,
        #"\#(common.dropLast(2))", "method": "list"}"#,
      ]
    }
    return """
      {"documents": {"any collection/1": {}, "any collection/1/any other/1": {}},
       "cases": [\(cases.joined(separator: ", "))]}
      """
  }
}
