/// The indented form of JSON that `print=pretty` asks for.
enum JSONLayout {
  /// Returns compact JSON with each member of an object on a line of its own.
  static func pretty(_ json: [UInt8]) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(json.count * 2)
    var containers: [UInt8] = []
    var depth = 0
    var isInString = false
    var isEscaped = false
    for byte in json {
      if isInString {
        output.append(byte)
        isInString = isEscaped || byte != UInt8(ascii: "\"")
        isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
        continue
      }
      switch byte {
      case UInt8(ascii: "{"):
        depth += 1
        containers.append(byte)
        output.append(byte)
        appendLine(depth, to: &output)
      case UInt8(ascii: "}"):
        depth -= 1
        containers.removeLast()
        appendLine(depth, to: &output)
        output.append(byte)
      case UInt8(ascii: "["):
        containers.append(byte)
        output += "[ ".utf8
      case UInt8(ascii: "]"):
        containers.removeLast()
        output += " ]".utf8
      case UInt8(ascii: ":"): output += " : ".utf8
      case UInt8(ascii: ","):
        output.append(byte)
        if containers.last == UInt8(ascii: "{") {
          appendLine(depth, to: &output)
        } else {
          output.append(UInt8(ascii: " "))
        }
      default:
        isInString = byte == UInt8(ascii: "\"")
        output.append(byte)
      }
    }
    return output
  }

  private static func appendLine(_ depth: Int, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\n"))
    for _ in 0..<(depth * 2) { output.append(UInt8(ascii: " ")) }
  }
}
