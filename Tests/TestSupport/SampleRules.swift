/// Security rules of Firestore for tests.
package enum SampleRules {
  /// Returns a file with rules for the documents of every database, from line 4 on.
  package static func documents(_ rules: String) -> String {
    """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        \(rules)
      }
    }

    """
  }

  /// Returns a file whose only rule is for a get of `t/{id}`, in line 4.
  package static func get(if condition: String) -> String {
    documents("match /t/{id} { allow get: if \(condition); }")
  }
}
