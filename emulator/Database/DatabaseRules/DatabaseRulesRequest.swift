package import DatabaseModel
package import JSONText

/// What the rules may look at when they decide.
package struct DatabaseRulesRequest {
  /// The variable `auth`: an object with `uid`, `provider` and `token`; null for nobody.
  package var auth: JSONValue
  /// The variable `now`: the server's time, which the timestamps of the write have, too.
  package var nowMilliseconds: Int64
  /// The tree before the write.
  package var data: any DatabaseView
  /// The tree after the write, with resolved server values; nil for a read.
  package var newData: (any DatabaseView)?

  package init(
    auth: JSONValue,
    nowMilliseconds: Int64,
    data: any DatabaseView,
    newData: (any DatabaseView)? = nil
  ) {
    self.auth = auth
    self.nowMilliseconds = nowMilliseconds
    self.data = data
    self.newData = newData
  }
}
