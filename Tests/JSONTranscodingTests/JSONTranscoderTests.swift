import FirestoreProtos
import Foundation
import StatusCodes
import SwiftProtobuf
import Testing

@testable import JSONTranscoding

/// Requests as REST clients write them, and production's errors for invalid ones.
@Suite("JSON to messages")
struct JSONTranscoderTests {
  private let schema: MessageSchema

  init() throws {
    let descriptors = try #require(
      Data(base64Encoded: FirestoreDescriptors.base64, options: .ignoreUnknownCharacters)
    )
    schema = try MessageSchema(descriptors: descriptors)
  }

  private func commit(_ json: String) throws(StatusError) -> Google_Firestore_V1_CommitRequest {
    try JSONTranscoder.message(Array(json.utf8), of: schema)
  }

  private func query(_ json: String) throws(StatusError) -> Google_Firestore_V1_RunQueryRequest {
    try JSONTranscoder.message(Array(json.utf8), of: schema)
  }

  private func value(_ json: String) throws(StatusError) -> Google_Firestore_V1_Value {
    try JSONTranscoder.message(Array(json.utf8), of: schema)
  }

  @Test("Every kind of value is read")
  func values() throws {
    let cases: [(String, Google_Firestore_V1_Value.OneOf_ValueType?)] = [
      (#"{"nullValue":null}"#, .nullValue(.nullValue)),
      (#"{"nullValue":"NULL_VALUE"}"#, .nullValue(.nullValue)),
      (#"{"booleanValue":true}"#, .booleanValue(true)),
      (#"{"booleanValue":"false"}"#, .booleanValue(false)),
      (#"{"integerValue":"-9223372036854775808"}"#, .integerValue(.min)),
      (#"{"integerValue":9223372036854775807}"#, .integerValue(.max)),
      (#"{"integerValue":1e3}"#, .integerValue(1000)),
      (#"{"doubleValue":-0}"#, .doubleValue(-0.0)),
      (#"{"doubleValue":"-Infinity"}"#, .doubleValue(-.infinity)),
      (#"{"doubleValue":"1.5"}"#, .doubleValue(1.5)),
      (#"{"stringValue":"\u00e9\ud83d\ude00\n\""}"#, .stringValue("é😀\n\"")),
      (
        #"{"timestampValue":"1970-01-01T14:00:00+14:00"}"#,
        .timestampValue(.init())
      ),
      (
        #"{"timestampValue":"1970-01-01T00:00:00-23:59"}"#,
        .timestampValue(.with { $0.seconds = 86_340 })
      ),
      (#"{"bytesValue":"-_8"}"#, .bytesValue(Data([0xFB, 0xFF]))),
      (#"{"bytesValue":"+/8="}"#, .bytesValue(Data([0xFB, 0xFF]))),
      (
        #"{"timestampValue":"1970-01-01T01:00:01.5+01:00"}"#,
        .timestampValue(.with { ($0.seconds, $0.nanos) = (1, 500_000_000) })
      ),
      (
        #"{"geoPointValue":{"latitude":1,"longitude":-2.5}}"#,
        .geoPointValue(.with { ($0.latitude, $0.longitude) = (1, -2.5) })
      ),
      (
        #"{"arrayValue":{"values":[{"stringValue":"a"},{"arrayValue":{}}]}}"#,
        .arrayValue(
          .with {
            $0.values = [.with { $0.stringValue = "a" }, .with { $0.arrayValue = .init() }]
          }
        )
      ),
      (
        #"{"mapValue":{"fields":{"":{"integerValue":1}}}}"#,
        .mapValue(.with { $0.fields = ["": .with { $0.integerValue = 1 }] })
      ),
      (#"{"stringValue":null}"#, nil),
    ]
    for (json, expected) in cases {
      #expect(try value(json).valueType == expected, "\(json)")
    }
    guard case .doubleValue(let zero) = try value(#"{"doubleValue":-0.0}"#).valueType else {
      return #expect(Bool(false), "no double")
    }
    #expect(zero.sign == .minus)
  }

  @Test(
    "What production lets through is let through",
    arguments: [
      #"{"structuredQuery":{"from":[{"collectionId":"c"}],"limit":3}}"#,
      #"{"structured_query":{"from":[{"collection_id":"c"}],"limit":3}}"#,
      #"{"structuredQuery":{"from":[{"collectionId":"c"},],"limit":"3",},}"#,
      #"{"structuredQuery":{"from":{"collectionId":"c"},"limit":{"value":3}}}"#,
      "{structuredQuery:{'from':[{'collectionId':'c'}],limit:3.0}}",
      "{\"structuredQuery\":\n{\"from\":[null,{\"collectionId\":\"c\"}],\"limit\":3},\"transaction\":null}",
    ]
  )
  func leniencies(json: String) throws {
    let expected = Google_Firestore_V1_RunQueryRequest.with {
      $0.structuredQuery.from = [.with { $0.collectionID = "c" }]
      $0.structuredQuery.limit = .init(3)
    }
    #expect(try query(json) == expected)
  }

  @Test("Names of enumerations are read in any case, and numbers stand for them")
  func enumerations() throws {
    for op in [#""GREATER_THAN""#, #""greater_than""#, #""Greater-Than""#, "3", #""3""#] {
      let request = try query(#"{"structuredQuery":{"where":{"fieldFilter":{"op":\#(op)}}}}"#)
      #expect(request.structuredQuery.where.fieldFilter.op == .greaterThan, "\(op)")
    }
  }

  @Test("Two Unicode forms of a field's name are two fields")
  func forms() throws {
    let request = try commit(
      #"{"writes":[{"update":{"fields":{"\u00e9":{"integerValue":1},"e\u0301":{"integerValue":2}}}}]}"#
    )
    #expect(request.writes[0].update.fields.count == 2)
  }

  private static let write = "writes[0].update.fields[0].value"

  private static func write(_ value: String) -> String {
    #"{"writes":[{"update":{"fields":{"a":\#(value)}}}]}"#
  }

  @Test(
    "What does not fit is reported with its place",
    arguments: [
      (
        write(#"{"integerValue":"9223372036854775808"}"#),
        "Invalid value at '\(write).integer_value' (TYPE_INT64), \"9223372036854775808\"",
        "\(write).integer_value"
      ),
      (
        write(#"{"integerValue":1.5}"#),
        "Invalid value at '\(write).integer_value' (TYPE_INT64), 1.5", "\(write).integer_value"
      ),
      (
        write(#"{"integerValue":"0x10"}"#),
        "Invalid value at '\(write).integer_value' (TYPE_INT64), \"0x10\"",
        "\(write).integer_value"
      ),
      (
        write(#"{"integerValue":9007199254740993.0}"#),
        "Invalid value at '\(write).integer_value' (TYPE_INT64), 9007199254740993.0",
        "\(write).integer_value"
      ),
      (
        write(#"{"timestampValue":"9999-12-31T23:59:59-14:00"}"#),
        "Invalid value at '\(write).timestamp_value' (type.googleapis.com/google.protobuf.Timestamp),"
          + " Field 'timestampValue', Timestamp value exceeds limits", "\(write).timestamp_value"
      ),
      (
        write(#"{"stringValue":7}"#),
        "Invalid value at '\(write).string_value' (TYPE_STRING), 7", "\(write).string_value"
      ),
      (
        write(#"{"stringValue":{}}"#),
        "Invalid value at '\(write)' (string_value), Starting an object on a scalar field", write
      ),
      (
        write(#"{"stringValue":["a"]}"#),
        "Invalid JSON payload received. Unknown name \"stringValue\" at '\(write)': Proto field is "
          + "not repeating, cannot start list.", write
      ),
      (
        write(#"{"bytesValue":"!!!"}"#),
        "Invalid value at '\(write).bytes_value' (TYPE_BYTES), Base64 decoding failed for \"!!!\"",
        "\(write).bytes_value"
      ),
      (
        write(#"{"doubleValue":"0x1p3"}"#),
        "Invalid value at '\(write).double_value' (TYPE_DOUBLE), \"0x1p3\"", "\(write).double_value"
      ),
      (
        write(#"{"timestampValue":"yesterday"}"#),
        "Invalid value at '\(write).timestamp_value' (type.googleapis.com/google.protobuf.Timestamp),"
          + " Field 'timestampValue', Illegal timestamp format; timestamps must end with 'Z' or have "
          + "a valid timezone offset.", "\(write).timestamp_value"
      ),
      (
        write(#"{"timestampValue":"10000-01-01T00:00:00Z"}"#),
        "Invalid value at '\(write).timestamp_value' (type.googleapis.com/google.protobuf.Timestamp),"
          + " Field 'timestampValue', Timestamp value exceeds limits", "\(write).timestamp_value"
      ),
      (
        write(#"{"futureValue":{"deep":[1,{"x":null}]}}"#),
        "Invalid JSON payload received. Unknown name \"futureValue\" at '\(write)': Cannot find field.",
        write
      ),
      (
        #"{"writes":[{"delete":"a","update":{}}]}"#,
        "Invalid value at 'writes[0]' (oneof), oneof field 'operation' is already set. Cannot set "
          + "'update'", "writes[0]"
      ),
      (
        #"{"writes":[{},{"updateMask":{"fieldPaths":["a",5]}}]}"#,
        "Invalid value at 'writes[1].update_mask.field_paths[1]' (TYPE_STRING), 5",
        "writes[1].update_mask.field_paths[1]"
      ),
      (
        #"{"writes":"x"}"#,
        "Invalid value at 'writes[0]' (type.googleapis.com/google.firestore.v1.Write), \"x\"",
        "writes[0]"
      ),
      (
        #"{"writes":[{"update":{"fields":{"a":{},"a":{}}}}]}"#,
        "Invalid JSON payload received. Unknown name \"a\" at 'writes[0].update.fields[1]': Repeated "
          + "map key: 'a' is already set.", "writes[0].update.fields[1]"
      ),
      (
        "[]", "Invalid JSON payload received. Unknown name \"\": Root element must be a message.",
        nil
      ),
      (
        #"{"extra":1}"#,
        "Invalid JSON payload received. Unknown name \"extra\": Cannot find field.", nil
      ),
    ] as [(String, String, String?)]
  )
  func violations(json: String, words: String, place: String?) {
    let violation = FieldViolation(field: place, description: words)
    #expect(throws: StatusError(.invalidArgument, words, details: [.badRequest([violation])])) {
      try commit(json)
    }
  }

  @Test("All that does not fit is reported at once")
  func several() throws {
    let error = #expect(throws: StatusError.self) {
      try query(#"{"structuredQuery":{"offset":"x","limit":true,"more":1}}"#)
    }
    let lines = try #require(error?.statusMessage.split(separator: "\n"))
    #expect(
      lines == [
        "Invalid value at 'structured_query.offset' (TYPE_INT32), \"x\"",
        "Invalid value at 'structured_query.limit.value' (TYPE_INT32), true",
        "Invalid JSON payload received. Unknown name \"more\" at 'structured_query': Cannot find field.",
      ]
    )
    guard case .badRequest(let violations) = try #require(error?.statusDetails.first) else {
      return #expect(Bool(false), "no BadRequest")
    }
    #expect(violations.map(\.description) == lines.map(String.init))
  }

  @Test("However much is wrong, the answer is small")
  func bounds() throws {
    let many = "{" + (0..<100_000).map { "\"x\($0)\":1" }.joined(separator: ",") + "}"
    let long = String(repeating: "x", count: 1_000_000)
    for json in [many, #"{"\#(long)":1}"#, #"{"writes":"\#(long)"}"#] {
      let error = #expect(throws: StatusError.self) { try commit(json) }
      #expect(try #require(error).statusMessage.utf8.count < 20_000)
    }
  }

  @Test("The place of a body within the request precedes all others")
  func root() {
    let error = #expect(throws: StatusError.self) {
      let _: Google_Firestore_V1_Document = try JSONTranscoder.message(
        Array(#"{"x":1}"#.utf8),
        at: "document",
        of: schema
      )
    }
    #expect(error?.statusMessage.contains("\"x\" at 'document': Cannot find") == true)
  }

  @Test(
    "A mistake of syntax is shown with what stands around it",
    arguments: [
      ("not json", "Unexpected token.\nnot json\n^"),
      ("{not json", "Expected : between key:value pair.\n{not json\n     ^"),
      (#"{"writes":"#, "Unexpected end of string. Expected a value.\n\n^"),
      (
        #"{"writes":[] "x":1}"#,
        "Expected , or } after key:value pair.\n{\"writes\":[] \"x\":1}\n             ^"
      ),
      (
        #"{"writes":[{}{}]}"#,
        "Expected , or ] after array value.\n{\"writes\":[{}{}]}\n             ^"
      ),
      (
        "{\"a\":trueish}", "Expected , or } after key:value pair.\n{\"a\":trueish}\n         ^"
      ),
      ("{} {}", "Parsing terminated before end of input.\n{} {}\n   ^"),
      ("{\"a\":01}", "Octal/hex numbers are not valid JSON values.\n{\"a\":01}\n     ^"),
      ("{\"a\":1e999}", "Number exceeds the range of double.\n{\"a\":1e999}\n     ^"),
      ("{\"a\":-}", "Unable to parse number.\n{\"a\":-}\n     ^"),
      ("{\"a\":\"\\ud800\"}", "Invalid unicode code point.\n{\"a\":\"\\ud800\"}\n      ^"),
      ("{\"a\":\"b", "Expected a closing quote in string.\n{\"a\":\"b\n     ^"),
    ]
  )
  func syntax(json: String, words: String) {
    #expect(throws: StatusError.invalidArgument("Invalid JSON payload received. \(words)")) {
      try commit(json)
    }
  }

  @Test("Nesting beyond the bound is refused, however deep, of objects and of arrays")
  func depth() {
    for (open, count) in [(#"{"a":"#, 101), ("[", 101), ("[", 1_000_000)] {
      let error = #expect(throws: StatusError.self) {
        try commit(#"{"x":"# + String(repeating: open, count: count))
      }
      #expect(error?.statusMessage.contains("Message too deep") == true)
    }
  }

  @Test("Bytes that are no UTF-8 are refused")
  func notUTF8() {
    #expect(throws: StatusError.self) {
      let _: Google_Firestore_V1_CommitRequest = try JSONTranscoder.message(
        [UInt8(ascii: "{"), 0xFF, UInt8(ascii: "}")],
        of: schema
      )
    }
  }

  @Test("What a message's own JSON says is read as the message")
  func roundTrip() throws {
    let request = Google_Firestore_V1_CommitRequest.with {
      $0.database = "projects/p/databases/(default)"
      $0.transaction = Data([0, 255, 7])
      $0.writes = [
        .with {
          $0.update.name = "n"
          $0.update.fields = [
            "a": .with { $0.doubleValue = .nan }, "b c": .with { $0.bytesValue = Data([1]) },
          ]
          $0.updateMask.fieldPaths = ["a", "`b c`"]
          $0.updateTransforms = [
            .with {
              $0.fieldPath = "t"
              $0.setToServerValue = .requestTime
            },
            .with {
              $0.fieldPath = "u"
              $0.appendMissingElements.values = [.with { $0.geoPointValue.latitude = 1 }]
            },
          ]
          $0.currentDocument.updateTime = .with { ($0.seconds, $0.nanos) = (1_700_000_000, 1000) }
        },
        .with { $0.verify = "v" },
      ]
    }
    let read: Google_Firestore_V1_CommitRequest = try JSONTranscoder.message(
      try request.jsonUTF8Bytes(),
      of: schema
    )
    // Compares bytes, because `==` is false for NaN.
    var options = BinaryEncodingOptions()
    options.useDeterministicOrdering = true
    let bytes: [UInt8] = try read.serializedBytes(options: options)
    #expect(try bytes == request.serializedBytes(options: options))
  }
}
