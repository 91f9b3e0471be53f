/// The condition on the stored document under which a write applies.
package enum Precondition: Sendable, Hashable {
  case none
  case exists(Bool)
  case updateTime(Timestamp)
}
