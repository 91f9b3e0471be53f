/// The conversions between Firestore's messages and the values of `DocumentModel`.
///
/// Functions such as `value(_:)`, `write(_:)` and `query(_:parent:)` decode a message and throw
/// `INVALID_ARGUMENT` with production's error text. `proto(_:)` creates a message and cannot fail.
package enum WireFormat {}
