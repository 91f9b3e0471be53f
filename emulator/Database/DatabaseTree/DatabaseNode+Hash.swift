import Cryptography
package import DatabaseModel

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension DatabaseNode {
  /// The hash that Firebase's clients compute of a node; empty for no node.
  ///
  /// It is SHA-1 in base 64, over a text that contains the hashes of the children in the order of
  /// their priorities.
  package var clientHash: String {
    var text: [UInt8] = []
    if let priority {
      text += "priority:".utf8
      priority.appendHashText(to: &text)
      text.append(UInt8(ascii: ":"))
    }
    switch content {
    case .empty: return ""
    case .leaf(let leaf): leaf.appendHashText(to: &text)
    case .children(let children):
      let query = DatabaseQuery(order: .priority)
      let hasPriorities = children.contains { $0.node.priority != nil }
      let ordered =
        hasPriorities
        ? children.sorted { query.entry($0.key, $0.node) < query.entry($1.key, $1.node) }
        : Array(children)
      for child in ordered {
        text.append(UInt8(ascii: ":"))
        text += child.key.text.utf8
        text.append(UInt8(ascii: ":"))
        text += child.node.clientHash.utf8
      }
    }
    return Data(SHA1.hash(data: text)).base64EncodedString()
  }
}

extension DatabaseLeaf {
  fileprivate func appendHashText(to text: inout [UInt8]) {
    switch self {
    case .boolean(let flag): text += "boolean:\(flag)".utf8
    case .number(let number):
      text += "number:".utf8
      let digits = String(number.bitPattern, radix: 16)
      text += String(repeating: "0", count: 16 - digits.count).utf8
      text += digits.utf8
    case .string(let string):
      text += "string:".utf8
      text += string.utf8
    }
  }
}
