/// Conversions between Firestore's messages and the values of `DocumentModel`.
///
/// `value(_:)`, `write(_:)`, `query(_:parent:)` and their kin read a message and throw
/// `INVALID_ARGUMENT` in production's words; `proto(_:)` makes one and cannot fail.
package enum WireFormat {}
