import Foundation

/// The words of a text in the form in which names are compared.
///
/// Case, accents, width, invisible characters and letters that look alike make no difference, so
/// that nobody gets another name by looking like it.
enum NameWords {
  /// The words of a text, in order.
  static func of(_ text: String) -> [String] {
    var shape = ""
    for scalar in text.lowercased().decomposedStringWithCompatibilityMapping.lowercased()
      .unicodeScalars
    {
      let properties = scalar.properties
      switch properties.generalCategory {
      case .nonspacingMark, .enclosingMark, .format: continue
      default: break
      }
      if properties.isDefaultIgnorableCodePoint { continue }
      if let like = lookalikes[scalar] {
        shape += like
      } else {
        shape.unicodeScalars.append(scalar)
      }
    }
    return shape.split { !$0.isLetter && !$0.isNumber }.map {
      String($0).replacing("rn", with: "m").replacing("vv", with: "w")
    }
  }

  /// The frequent words of the languages that `LexicalEmbedding` knows.
  static let frequent = Set(LexicalEmbedding.frequentWords.flatMap(of))

  /// Letters and the Latin letters that they look like; `i`, `l` and `1` are one letter.
  private static let lookalikes: [Unicode.Scalar: String] = {
    let alike: [(String, String)] = [
      ("1i|ıіιӏ", "l"), ("0оοσօ", "o"), ("аαɑ", "a"), ("вβ", "b"), ("сϲ", "c"), ("ԁđ", "d"),
      ("еεё", "e"), ("ɡ", "g"), ("нηһ", "h"), ("јϳ", "j"), ("кκ", "k"), ("łӏ", "l"), ("мμ", "m"),
      ("пո", "n"), ("ø", "o"), ("рρ", "p"), ("ԛ", "q"), ("ѕ", "s"), ("тτ", "t"), ("υս", "u"),
      ("ν", "v"), ("ԝω", "w"), ("хχ", "x"), ("уγ", "y"), ("ζ", "z"), ("ß", "ss"), ("æ", "ae"),
      ("œ", "oe"),
    ]
    var lookalikes: [Unicode.Scalar: String] = [:]
    for (letters, latin) in alike {
      for scalar in letters.unicodeScalars { lookalikes[scalar] = latin }
    }
    return lookalikes
  }()
}
