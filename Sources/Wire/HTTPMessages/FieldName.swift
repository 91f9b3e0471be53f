package import HTTPTypes

/// Returns the header name of a literal; a malformed literal is a programming error.
package func fieldName(_ literal: StaticString) -> HTTPField.Name {
  guard let name = HTTPField.Name(literal.description) else {
    preconditionFailure("\(literal) is not a header name")
  }
  return name
}
